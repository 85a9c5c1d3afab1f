import { existsSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { Command } from 'commander'
import { withEnvFile } from '../config/settings.ts'
import { SyncError } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { systemFetch } from '../platform/fetch.ts'
import { createLog } from '../platform/log.ts'
import { createSecrets } from '../platform/secrets.ts'
import type { Act } from './cli.ts'
import { printable } from './printable.ts'
import { table } from './table.ts'

interface DiscoverFlags {
  readonly file?: string
}

export function discoverVerb(): Command {
  return new Command('discover')
    .summary('list the streams that a manifest\'s source offers')
    .description('Lists the streams that the source of a manifest offers, with their keys and cursors. The manifest needs no streams yet.')
    .option('--file <file>', 'the manifest (default: ./tidemark.yaml)')
    .option('--json', 'answer in JSON, for programs')
}

export const discover: Act<[DiscoverFlags]> = async (cli, flags) => {
  const path = resolve(cli.folder, flags.file ?? 'tidemark.yaml')
  if (!existsSync(path)) throw new SyncError('WORKER_NOT_FOUND', `There is no file ${path}.`)
  const folder = dirname(path)
  // Other verbs start without what reads YAML.
  const [{ CONNECTORS }, { readManifest }] = await Promise.all([import('../config/manifest/connectors.ts'), import('../config/manifest/manifest.ts')])
  const { connector, config } = readManifest(path, relative(cli.folder, path), cli.environment)
  const source = CONNECTORS[connector]
  if (source.discover === undefined) throw new SyncError('ARGUMENT_INVALID', `The connector ${connector} cannot list streams: its source does not tell which there are.`)
  const found = await source.discover(config, folder, {
    fetch: systemFetch, secrets: createSecrets(withEnvFile(cli.environment, folder)), signal: cli.listenForStop(), clock: systemClock, log: createLog({ level: 'silent' }),
  })
  const streams = found.map(({ id, key, cursor, candidates }) => ({ id, key, cursor: cursor ?? null, candidates, needs: key.length === 0 ? 'key' : null, mode: source.isFollowed === true || cursor !== undefined ? 'incremental' : 'full_refresh' }))
  const { terminal } = cli
  if (terminal.json) {
    terminal.document({ connector, streams })
    return
  }
  const rows = streams.map(({ id, key, cursor, candidates, mode }) => [id, key.join(', ') || 'none: name one', cursor ?? (candidates.length > 0 ? `none (${candidates.join(', ')}?)` : 'none'), mode].map((cell) => printable(cell)))
  terminal.print(...table(['STREAM', 'KEY', 'CURSOR', 'MODE'], rows))
}
