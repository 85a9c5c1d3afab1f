import { existsSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { Command } from 'commander'
import { defaultWorkerName } from '../../worker/load-worker.ts'
import type { ManifestStream } from '../../config/manifest/manifest-file.ts'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../engine/sync-plan.ts'
import { createLog } from '../../platform/log.ts'
import { callSource } from '../../runner/call-source.ts'
import type { DiscoveredStream } from '../../sources/kit/define-source.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { toPrintable } from '../kit/printable.ts'
import { formatTable } from '../kit/table.ts'
import { openTargetPauses } from '../kit/target-pauses.ts'
import { resolveStoreTarget, withStoreFlags, type TargetFlags } from '../kit/target.ts'

type DiscoverFlags = TargetFlags

export function discoverVerb(): Command {
  return withStoreFlags(new Command('discover'))
    .summary('list the streams that the source of a manifest offers')
    .description(
      'Lists the streams that the source of a manifest offers, with their keys and cursors. The manifest needs no streams yet; for declared streams, the differences from the stored columns are shown.',
    )
}

export const discover: VerbAction<[DiscoverFlags]> = async (cli, flags) => {
  const path = resolve(cli.folder, flags.file ?? 'tidemark.yaml')
  if (!existsSync(path))
    throw new SyncError('WORKER_NOT_FOUND', `The file ${path} does not exist. Pass the manifest with --file.`)
  const folder = dirname(path)
  // Imported here so that other verbs start without the YAML parser.
  const [{ CONNECTORS }, { readManifest }] = await Promise.all([
    import('../../config/manifest/connectors.ts'),
    import('../../config/manifest/manifest.ts'),
  ])
  const {
    name = defaultWorkerName(path),
    connector,
    config,
    streams: declared,
  } = readManifest(path, relative(cli.folder, path), cli.environment)
  const source = CONNECTORS[connector]
  const { discover: discoverStreams } = source
  if (discoverStreams === undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The connector ${connector} cannot list streams. Declare them in the manifest.`,
    )
  const found = await askForStreams(cli, flags, name, (context) => discoverStreams(config, folder, context, declared))
  const streams = found.map(({ id, key, cursor, candidates }) => ({
    id,
    key,
    cursor: cursor ?? null,
    candidates,
    needs: key.length === 0 ? 'key' : null,
    mode: source.followsChanges || cursor !== undefined ? 'incremental' : 'full_refresh',
  }))
  const drift = await compareWithLanded(cli, flags, declared, found, source.listsStreams)
  const { terminal } = cli
  if (terminal.json) {
    terminal.printDocument({ connector, streams, ...(declared.length > 0 && { drift }) })
    return
  }
  const rows = streams.map(({ id, key, cursor, candidates, mode }) =>
    [
      id,
      key.join(', ') || 'none: name one',
      cursor ?? (candidates.length > 0 ? `none (${candidates.join(', ')}?)` : 'none'),
      mode,
    ].map((cell) => toPrintable(cell)),
  )
  terminal.print(...formatTable(['STREAM', 'KEY', 'CURSOR', 'MODE'], rows))
  for (const { stream, isGone, new: added, gone } of drift) {
    const summary = isGone
      ? 'the source no longer lists it'
      : [...added.map((name) => `new ${name}`), ...gone.map((name) => `gone ${name}`)].join('; ')
    terminal.print(`${terminal.colors.yellow('•')} ${stream}: ${toPrintable(summary)}`)
  }
}

/** Taps and large services take longer to list their streams than to answer for a page. */
const DISCOVER_DEADLINE_MS = 600_000

/** Calls the source once, after any active rate-limit pause. A pause that the source requests is stored. */
async function askForStreams<Answer>(
  cli: Cli,
  flags: TargetFlags,
  worker: string,
  ask: (context: SyncContext) => Promise<Answer>,
): Promise<Answer> {
  const stopping = cli.listenForStop()
  const target = resolveStoreTarget(cli, flags)
  const plan: SyncPlan = {
    worker,
    sync: 'discover',
    owner: 'discover',
    mode: 'replace',
    databases: [],
    pacers: [],
    scope: null,
    upstreamToleranceMs: 0,
    sweep: DEFAULT_SWEEP,
    limits: { ...DEFAULT_LIMITS, deadlineMs: DISCOVER_DEADLINE_MS },
    execute: async () => ({ changes: [], hasMore: false }),
  }
  const { ports, ...runtime } = await createRuntime(cli, target)
  const pauses = openTargetPauses(target)
  try {
    const options = { tenant: target.tenant, plan, pacers: {}, pauses }
    return await callSource(
      { ...runtime, ports: { ...ports, log: createLog({ level: 'silent' }) } },
      stopping,
      options,
      ask,
    )
  } finally {
    await pauses.close()
  }
}

interface StreamDrift {
  readonly stream: string
  readonly isGone: boolean
  readonly new: readonly string[]
  readonly gone: readonly string[]
}

/** Compares the columns that the source lists with the stored columns, for each stream of the manifest. */
async function compareWithLanded(
  cli: Cli,
  flags: TargetFlags,
  declared: readonly ManifestStream[],
  found: readonly DiscoveredStream[],
  isListed: boolean,
): Promise<StreamDrift[]> {
  if (declared.length === 0) return []
  const store = await openExistingStore(resolveStoreTarget(cli, flags))
  try {
    const landed = new Map(
      ((await store?.databases()) ?? []).map(({ name, columns }) => [name, columns.map((column) => column.name)]),
    )
    return declared.flatMap(({ id, select, options = {} }): StreamDrift[] => {
      // Each connector has its own option for the stream: `options.table`, `options.object`, `options.topic`.
      const names = [...Object.values(options), id, id.slice(id.lastIndexOf('.') + 1)]
      const stream = found.find((one) => [one.id, ...(one.aliases ?? [])].some((name) => names.includes(name)))
      if (stream === undefined) return isListed ? [{ stream: id, isGone: true, new: [], gone: [] }] : []
      const { columns = [] } = stream
      const before = landed.get(id) ?? []
      if (before.length === 0 || columns.length === 0) return []
      // Keys and timestamps are stored even when not selected, so a missing column is missing in the source.
      const added = columns.filter((name) => (select === undefined || select.includes(name)) && !before.includes(name))
      const gone = before.filter((name) => !columns.includes(name))
      return added.length + gone.length === 0 ? [] : [{ stream: id, isGone: false, new: added, gone }]
    })
  } finally {
    await store?.close()
  }
}
