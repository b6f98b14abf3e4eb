<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The caller cancelled the call. The server may have carried it out. */
class CancelledException extends PostriderException
{
}
