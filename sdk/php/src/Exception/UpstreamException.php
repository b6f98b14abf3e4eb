<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** Another server refused, for example the DNS provider. */
class UpstreamException extends ApiException
{
}
