<?php

declare(strict_types=1);

namespace Postrider\Bridge\Symfony;

use Postrider\Exception\ConfigurationException;
use Symfony\Component\Mailer\Exception\IncompleteDsnException;
use Symfony\Component\Mailer\Exception\UnsupportedSchemeException;
use Symfony\Component\Mailer\Transport\AbstractTransportFactory;
use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mailer\Transport\TransportInterface;

/**
 * Makes transports of `postrider://KEY@HOST` and `postrider+api://KEY@HOST:PORT`. The server is asked by https; for a server
 * on this machine (`127.0.0.1`, `localhost`) by http, unless `?tls=1` is added.
 */
final class PostriderTransportFactory extends AbstractTransportFactory
{
    public function create(Dsn $dsn): TransportInterface
    {
        if (!$this->supports($dsn)) {
            throw new UnsupportedSchemeException($dsn, 'postrider', $this->getSupportedSchemes());
        }
        $host = $dsn->getHost();
        $local = preg_match('/^(localhost|127(\.\d+){3}|\[::1\])$/D', $host) === 1 && !$dsn->getOption('tls');
        $baseUrl = ($local ? 'http://' : 'https://') . $host . ($dsn->getPort() === null ? '' : ':' . $dsn->getPort());
        if ($host === 'default') {
            $baseUrl = (string) (getenv('POSTRIDER_BASE_URL') ?: ($_SERVER['POSTRIDER_BASE_URL'] ?? ''));
        }
        try {
            return new PostriderApiTransport($this->getUser($dsn), $baseUrl, $this->client, $this->dispatcher, $this->logger);
        } catch (ConfigurationException $failure) {
            throw new IncompleteDsnException($failure->getMessage(), 0, $failure);
        }
    }

    protected function getSupportedSchemes(): array
    {
        return ['postrider', 'postrider+api'];
    }
}
