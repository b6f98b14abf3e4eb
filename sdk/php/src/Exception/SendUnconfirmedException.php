<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The server could not tell whether it took the email. Sending it again could deliver it twice: call `resolve()`. */
class SendUnconfirmedException extends ApiException
{
    public readonly ?string $emailId;
    /** @var (\Closure(string, float): array<string, mixed>)|null */
    private ?\Closure $lookup = null;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $id = $this->details['email_id'] ?? $error['email_id'] ?? null;
        $this->emailId = \is_string($id) ? $id : null;
    }

    /**
     * @internal
     *
     * @param \Closure(string, float): array<string, mixed> $lookup
     */
    public function resolveBy(\Closure $lookup): static
    {
        $this->lookup = $lookup;

        return $this;
    }

    /**
     * Asks for the email until it is no longer failed, and returns it as it is then, or at the end of the time. It never
     * sends again.
     *
     * @param float $timeout seconds to ask for
     *
     * @return array<string, mixed>
     *
     * @throws NotFoundException the server did not take the email
     */
    public function resolve(float $timeout = 60.0): array
    {
        if ($this->emailId === null || $this->lookup === null) {
            throw new PostriderException('Look for the email with `$client->emails->get()`: ' . ($this->emailId ?? 'id unknown'));
        }

        return ($this->lookup)($this->emailId, $timeout);
    }
}
