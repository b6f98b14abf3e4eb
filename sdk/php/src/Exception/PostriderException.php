<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The base of all exceptions of the SDK. Their messages say what to do and never contain the API key. */
class PostriderException extends \RuntimeException
{
}
