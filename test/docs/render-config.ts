import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DEFAULT_LIMITS, DEFAULT_SWEEP } from '../../src/engine/sync-plan.ts'
import { ROOT } from '../cli/package.ts'

/** The described interfaces and their files. */
const PARTS = [
  ['new Worker(…)', 'src/worker/worker.ts', 'WorkerOptions'],
  ['worker.database(name, …)', 'src/worker/worker.ts', 'DatabaseOptions'],
  ['worker.pacer(name, …)', 'src/worker/worker.ts', 'PacerOptions'],
  ['worker.sync(name, …)', 'src/worker/sync-options.ts', 'SyncOptions'],
  ['worker.track(name, …)', 'src/worker/track-options.ts', 'TrackOptions'],
  ['The source of a track', 'src/worker/track-options.ts', 'TrackSource'],
  ['worker.webhook(name, …)', 'src/worker/webhook-options.ts', 'WebhookOptions'],
  ['sweep', 'src/worker/sync-options.ts', 'SweepOptions'],
  ['limits', 'src/engine/sync-plan.ts', 'SyncLimits'],
  ['A page', 'src/contract/page.ts', 'Page'],
  ['The context of execute', 'src/contract/page.ts', 'SyncContext'],
] as const

const DEFAULTS: Readonly<Record<string, unknown>> = {
  ...DEFAULT_LIMITS,
  maxDeleteShare: DEFAULT_SWEEP.maxShare,
  allowEmpty: DEFAULT_SWEEP.allowEmpty,
}

/** Renders docs/reference/config.md from the interfaces and their comments. */
export function renderConfig(): string {
  return [
    '# Worker options',
    '',
    'Generated from the types; see `src/worker/worker.ts`.',
    ...PARTS.flatMap(([title, file, name]) => [
      '',
      `## ${title}`,
      '',
      '| name | type | description |',
      '|---|---|---|',
      ...membersOf(readFileSync(join(ROOT, file), 'utf8'), name).map(({ member, type, what }) => {
        const otherwise =
          DEFAULTS[member] === undefined || (name !== 'SyncLimits' && name !== 'SweepOptions')
            ? ''
            : ` Default: \`${String(DEFAULTS[member])}\`.`
        return `| \`${member}\` | \`${type.replaceAll('|', '\\|')}\` | ${what.replaceAll('|', '\\|')}${otherwise} |`
      }),
    ]),
    '',
    '## Environment variables',
    '',
    '| name | description |',
    '|---|---|',
    '| `TIDEMARK_STORE` | the store: `sqlite:file.db` or `postgres://…` (default: `sqlite:.tidemark/tidemark.db` in the folder of the worker) |',
    '| `TIDEMARK_STORE_MODULE` | a module that exports a store driver as its default, for URLs of another scheme; see [the guide](../guides/write-a-store.md) |',
    '| `TIDEMARK_TENANT` | the tenant (default: `default`) |',
    '| `TIDEMARK_LOG` | the log level: `debug`, `info`, `warn`, `error`, `silent` |',
    '| `TIDEMARK_TRACEPARENT` | `send` adds a traceparent header to requests to vendors and webhooks; see [the guide](../guides/observability.md) |',
    '| `TIDEMARK_KEY`, `TIDEMARK_KEY_FILE` | the keys that encrypt stored state; for a SQLite store, a key file is created on first use |',
    '| `NO_COLOR`, `FORCE_COLOR` | disable or force colours |',
    '',
    'All but the last are also read from `.env` in the folder of the worker. The environment takes precedence over `.env`, and a flag over both.',
    '',
  ].join('\n')
}

interface Member {
  readonly member: string
  readonly type: string
  readonly what: string
}

function membersOf(text: string, name: string): Member[] {
  const body = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text)?.[1]
  if (body === undefined) throw new Error(`There is no interface ${name}.`)
  const members: Member[] = []
  for (const [, comment = '', member, type] of body.matchAll(
    /(?:^ {2}\/\*\*([\s\S]*?)\*\/\n)?^ {2}(?:readonly )?(\w+)\??: (.+)$/gm,
  )) {
    const what = comment
      .split('\n')
      .map((line) => line.replace(/^\s*\*\s?/, '').trim())
      .join(' ')
      .trim()
    members.push({ member: member!, type: type!, what })
  }
  return members
}
