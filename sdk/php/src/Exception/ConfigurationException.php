<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The API key, the base URL or another argument cannot be used. Nothing was sent. */
class ConfigurationException extends PostriderException
{
}
