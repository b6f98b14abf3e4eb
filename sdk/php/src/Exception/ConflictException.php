<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The object changed meanwhile, exists already, or belongs to another account. */
class ConflictException extends ApiException
{
}
