<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The call's time is over. The server may have carried it out. */
class TimeoutException extends PostriderException
{
    public static function after(float $seconds, bool $answering): self
    {
        $what = $answering ? 'The answer was not complete' : 'The server did not answer';

        return new self(sprintf(
            '%s within %.3g s. Raise `timeout`, or check the server and the network between.',
            $what,
            $seconds,
        ));
    }
}
