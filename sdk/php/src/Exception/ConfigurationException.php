<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The API key, the base URL or a secret is missing or malformed. */
class ConfigurationException extends PostriderException
{
}
