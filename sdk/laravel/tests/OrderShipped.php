<?php

declare(strict_types=1);

namespace Postrider\Laravel\Tests;

use Illuminate\Mail\Mailable;
use Illuminate\Mail\Mailables\Attachment;
use Illuminate\Mail\Mailables\Content;
use Illuminate\Mail\Mailables\Envelope;
use Illuminate\Mail\Mailables\Headers;

final class OrderShipped extends Mailable
{
    public function __construct(private readonly string $key)
    {
    }

    public function envelope(): Envelope
    {
        return new Envelope(subject: 'Your order', tags: ['shipment'], metadata: ['order' => '4711']);
    }

    public function headers(): Headers
    {
        return new Headers(text: ['Idempotency-Key' => $this->key]);
    }

    public function content(): Content
    {
        return new Content(htmlString: '<p>Thanks</p>');
    }

    public function attachments(): array
    {
        return [Attachment::fromData(fn (): string => 'a,b', 'list.csv')->withMime('text/csv')];
    }
}
