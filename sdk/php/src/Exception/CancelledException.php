<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The caller cancelled the call. */
class CancelledException extends PostriderException
{
}
