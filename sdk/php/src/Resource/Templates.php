<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Templates of emails.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateTemplateParams from Types
 * @phpstan-import-type CreateTemplateResponse from Types
 * @phpstan-import-type ListTemplatesParams from Types
 * @phpstan-import-type Template from Types
 * @phpstan-import-type GetTemplateResponse from Types
 * @phpstan-import-type UpdateTemplateParams from Types
 * @phpstan-import-type UpdateTemplateResponse from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type PublishTemplateParams from Types
 * @phpstan-import-type PublishTemplateResponse from Types
 * @phpstan-import-type RollBackTemplateParams from Types
 * @phpstan-import-type RollBackTemplateResponse from Types
 * @phpstan-import-type PreviewTemplateParams from Types
 * @phpstan-import-type TemplatePreview from Types
 * @phpstan-import-type TestTemplateParams from Types
 * @phpstan-import-type Sent from Types
 * @phpstan-import-type DuplicateTemplateParams from Types
 * @phpstan-import-type DuplicateTemplateResponse from Types
 */
final class Templates
{
    /** Published versions of a template. */
    public readonly TemplatesVersions $versions;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->versions = new TemplatesVersions($client);
    }

    /**
     * Create a template.
     *
     * Fields of `$params`:
     * - `name`: Name, unique in the account
     * - `alias`: Name for API calls, unique in the account
     * - `category`: Category
     * - `unsubscribe_enabled`: Managed unsubscribe; always on for product and newsletter
     * - `from`: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
     * - `reply_to`: Default `Reply-To`, unless the send request has one
     * - `subject`: Markup of the subject
     * - `preheader`: Markup of the preview text after the subject
     * - `html`: Markup of the HTML body
     * - `mjml`: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
     *   and keeps the compiled `html`; a new `html` removes the source
     * - `text`: Markup of the plain-text body
     * - `variables`: Declared variables; undeclared ones are required
     *
     * @param CreateTemplateParams $params
     * @param Options $options
     *
     * @return CreateTemplateResponse
     */
    public function create(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'templates.create',
            'POST',
            '/templates',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List templates, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `category`: Any of these, separated by commas: transactional, product, newsletter
     * - `status`: Any of these, separated by commas: draft, published, archived
     *
     * @param ListTemplatesParams $params
     * @param Options $options
     *
     * @return Page<Template>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'templates.list',
            'GET',
            '/templates',
            query: ['limit', 'cursor', 'category', 'status'],
            pages: 'templates',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a template.
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param Options $options
     *
     * @return GetTemplateResponse
     */
    public function get(string $idOrAlias, array $options = []): array
    {
        $operation = new Operation(
            'templates.get',
            'GET',
            '/templates/{id_or_alias}',
            retry: true,
        );

        return $this->client->call($operation, [$idOrAlias], [], $options);
    }

    /**
     * Update the draft of a template.
     *
     * Fields of `$params`:
     * - `name`: Name, unique in the account
     * - `alias`: Name for API calls, unique in the account
     * - `category`: Category
     * - `unsubscribe_enabled`: Managed unsubscribe; always on for product and newsletter
     * - `from`: Default author, unless the send request has one: `Ada <ada@example.com>` or an object
     * - `reply_to`: Default `Reply-To`, unless the send request has one
     * - `subject`: Markup of the subject
     * - `preheader`: Markup of the preview text after the subject
     * - `html`: Markup of the HTML body
     * - `mjml`: MJML source of the HTML body, in place of `html`, which is compiled from it. Null removes the source
     *   and keeps the compiled `html`; a new `html` removes the source
     * - `text`: Markup of the plain-text body
     * - `variables`: Declared variables; undeclared ones are required
     * - `status`: `archived`, or the status before archiving
     * - `if_version`: The `draft_version` that the client has seen: 409 if it has changed
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param UpdateTemplateParams $params
     * @param Options $options
     *
     * @return UpdateTemplateResponse
     */
    public function update(string $idOrAlias, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'templates.update',
            'PATCH',
            '/templates/{id_or_alias}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$idOrAlias], $params, $options);
    }

    /**
     * Delete a template and its versions.
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $idOrAlias, array $options = []): array
    {
        $operation = new Operation(
            'templates.delete',
            'DELETE',
            '/templates/{id_or_alias}',
            retry: true,
        );

        return $this->client->call($operation, [$idOrAlias], [], $options);
    }

    /**
     * Publish the draft as a new version.
     *
     * Fields of `$params`:
     * - `note`: Note of the version
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param PublishTemplateParams $params
     * @param Options $options
     *
     * @return PublishTemplateResponse
     */
    public function publish(string $idOrAlias, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'templates.publish',
            'POST',
            '/templates/{id_or_alias}/publish',
            body: 'application/json',
        );

        return $this->client->call($operation, [$idOrAlias], $params, $options);
    }

    /**
     * Publish a copy of an earlier version.
     *
     * Fields of `$params`:
     * - `version` (required): The version to publish again
     * - `note`: Note of the version
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param RollBackTemplateParams $params
     * @param Options $options
     *
     * @return RollBackTemplateResponse
     */
    public function rollBack(string $idOrAlias, array $params, array $options = []): array
    {
        $operation = new Operation(
            'templates.rollBack',
            'POST',
            '/templates/{id_or_alias}/rollback',
            body: 'application/json',
        );

        return $this->client->call($operation, [$idOrAlias], $params, $options);
    }

    /**
     * Render a template without sending it.
     *
     * Fields of `$params`:
     * - `variables`: The template's variables by name
     * - `version`: The version to render; default: the draft
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param PreviewTemplateParams $params
     * @param Options $options
     *
     * @return TemplatePreview
     */
    public function preview(string $idOrAlias, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'templates.preview',
            'POST',
            '/templates/{id_or_alias}/preview',
            maps: ['variables'],
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$idOrAlias], $params, $options);
    }

    /**
     * Send a test email from a template.
     *
     * Fields of `$params`:
     * - `to` (required): Recipients: an address or a list
     * - `from`: Author; default: the template's
     * - `variables`: The template's variables by name
     * - `version`: The version to render; default: the draft
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param TestTemplateParams $params
     * @param Options $options
     *
     * @return Sent
     */
    public function testSend(string $idOrAlias, array $params, array $options = []): array
    {
        $operation = new Operation(
            'templates.testSend',
            'POST',
            '/templates/{id_or_alias}/test-send',
            maps: ['variables'],
            body: 'application/json',
        );

        return $this->client->call($operation, [$idOrAlias], $params, $options);
    }

    /**
     * Copy the draft into a new template.
     *
     * Fields of `$params`:
     * - `name`: Name; default: `… (copy)`
     * - `alias`: Alias; none by default
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param DuplicateTemplateParams $params
     * @param Options $options
     *
     * @return DuplicateTemplateResponse
     */
    public function duplicate(string $idOrAlias, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'templates.duplicate',
            'POST',
            '/templates/{id_or_alias}/duplicate',
            body: 'application/json',
        );

        return $this->client->call($operation, [$idOrAlias], $params, $options);
    }
}
