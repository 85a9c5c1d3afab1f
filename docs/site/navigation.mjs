// The order of the pages in the menu. A page that is missing here is listed last; test/docs/site.test.ts expects none.

/**
 * @typedef {{ title: string, pages: readonly string[], isClosed?: true }} MenuGroup
 * A page is a path in the repository; `*` at the end means the rest of that folder.
 */

/** @type {readonly MenuGroup[]} */
export const NAVIGATION = [
  { title: 'Start', pages: ['README.md', 'docs/tutorials/first-copy.md', 'docs/guides/choose-a-strategy.md'] },
  {
    title: 'Read a source',
    pages: [
      'docs/guides/write-a-connector.md',
      'docs/guides/probe.md',
      'docs/guides/manifests.md',
      'docs/guides/airbyte.md',
      'docs/guides/singer.md',
      'docs/guides/notion-workers.md',
      'docs/guides/sql.md',
      'docs/guides/postgres-cdc.md',
      'docs/guides/kafka.md',
      'docs/guides/files.md',
      'docs/guides/odata.md',
      'docs/guides/frontier.md',
      'docs/guides/failover.md',
      'docs/guides/ranges-and-order.md',
      'docs/guides/columns.md',
    ],
  },
  {
    title: 'Use the copy',
    pages: [
      'docs/guides/tables.md',
      'docs/guides/orm.md',
      'docs/guides/serve-the-feed.md',
      'docs/guides/read-the-feed.md',
      'docs/guides/webhooks.md',
      'docs/guides/agents.md',
      'docs/guides/export.md',
      'docs/guides/console.md',
    ],
  },
  { title: 'Copy it onward', pages: ['docs/guides/destinations.md', 'docs/guides/destinations/*'] },
  {
    title: 'Run it',
    pages: [
      'docs/guides/production.md',
      'docs/guides/embed.md',
      'docs/guides/connections.md',
      'docs/guides/connect-flow.md',
      'docs/guides/verify.md',
      'docs/guides/restate.md',
      'docs/guides/observability.md',
      'docs/guides/security.md',
      'docs/guides/troubleshooting.md',
      'docs/guides/faq.md',
    ],
  },
  { title: 'Move from another tool', pages: ['docs/guides/compare.md', 'docs/guides/move-from-*'] },
  {
    title: 'How it works',
    pages: [
      'docs/explanation/guarantees.md',
      'docs/explanation/no-gap.md',
      'docs/explanation/cycle.md',
      'docs/explanation/scale.md',
      'ARCHITECTURE.md',
      'docs/guides/write-a-store.md',
      'CONTRIBUTING.md',
    ],
  },
  {
    title: 'Reference',
    pages: [
      'docs/reference/cli.md',
      'docs/reference/config.md',
      'docs/reference/sources.md',
      'docs/reference/destinations.md',
      'docs/reference/providers.md',
      'docs/reference/http.md',
      'docs/reference/errors.md',
      'docs/reference/findings.md',
      'docs/reference/telemetry.md',
      'docs/reference/rules.md',
      'CHANGELOG.md',
    ],
  },
  { title: 'Exported names', pages: ['docs/reference/api/index.md', 'docs/reference/api/*'], isClosed: true },
  { title: 'Decisions', pages: ['docs/decisions/*'], isClosed: true },
]
