<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The server failed. Calls that may be repeated were repeated already. */
class ServerException extends ApiException
{
}
