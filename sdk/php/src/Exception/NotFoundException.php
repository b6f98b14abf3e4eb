<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** No such object in this account. */
class NotFoundException extends ApiException
{
}
