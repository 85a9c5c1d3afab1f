import { withoutRange } from '../kit/since.ts'
import { resolve } from 'node:path'
import { SyncError, type JsonObject } from '../../contract/index.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import type { SingleStream } from '../kit/define-source.ts'
import type { TokenStore } from '../kit/token-store.ts'
import { readManifest, type Manifest, type ManifestStream } from './manifest/manifest.ts'
import { describeProblems, findProblems, findRootProblems, type Problem } from './manifest/support.ts'
import { openStream } from './open-stream.ts'
import { Authentication } from './requests/authenticate.ts'
import { CallBudget } from './requests/budget.ts'
import { Run } from './requests/run.ts'
import type { Session } from './requests/send.ts'
import { checkSettings, fillSecrets } from './settings.ts'
import type { AirbyteSettings, AirbyteStreamOptions } from './stream-options.ts'

export type { AirbyteSettings, AirbyteStreamOptions } from './stream-options.ts'
export type { Problem } from './manifest/support.ts'
export type { TokenStore } from '../kit/token-store.ts'

/** The manifest of an Airbyte connector, and the settings that it asks for. */
export interface AirbyteOptions {
  /** The path of the manifest. */
  readonly manifest: string
  /** The settings of its specification. A value of only `${NAME}` is a secret. */
  readonly config: AirbyteSettings
  /** Relative paths start here. The default is the working directory. */
  readonly folder?: string
  /** Opens the durable token store of an account, for sources that rotate refresh tokens. */
  readonly tokens?: (account: string) => TokenStore
}

/** The streams of a manifest. */
export interface AirbyteSource {
  /** The names of the streams, also of those that cannot be run. */
  readonly names: readonly string[]
  /** The reasons why streams cannot be run, by name. Streams without problems are absent. */
  readonly problems: ReadonlyMap<string, readonly Problem[]>
  /** Opens a stream for `worker.sync`. Throws if the manifest uses something for it that is not supported. */
  stream(name: string, options?: AirbyteStreamOptions): SingleStream
}

/**
 * Runs a declarative manifest of Airbyte, unchanged. Full-refresh streams replace; streams with a `DatetimeBasedCursor`
 * are incremental.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { airbyte } from 'tidemark/sources/airbyte'
 *
 * const worker = new Worker({ name: 'shop' })
 * const shop = airbyte({ manifest: './manifest.yaml', config: { api_key: '${SHOP_KEY}', start_date: '2026-01-01' } })
 * worker.sync('orders', { database: worker.database('orders'), ...shop.stream('orders') })
 * ```
 */
export function airbyte({ manifest: path, config, folder = '.', tokens }: AirbyteOptions): AirbyteSource {
  const manifest = readManifest(resolve(folder, path))
  return openManifest(manifest, checkSettings(manifest, config), tokens)
}

/** Opens a manifest that is read already, with checked settings. */
export function openManifest(
  manifest: Manifest,
  settings: JsonObject,
  tokens: ((account: string) => TokenStore) | undefined,
): AirbyteSource {
  const session: Session = {
    authentication: new Authentication(tokens),
    calls: new CallBudget(),
    budget: manifest.budget,
  }
  const names = manifest.streams.map(({ name }) => name)
  const problems = new Map(
    manifest.streams
      .map((stream) => [stream.name, findProblems(manifest, stream)] as const)
      .filter(([, found]) => found.length > 0),
  )
  return {
    names,
    problems,
    stream(name, options = {}) {
      const stream = findStream(manifest, name)
      const found = problems.get(stream.name)
      if (found !== undefined)
        throw new SyncError(
          'SYNC_INVALID',
          `Stream "${name}" needs ${describeProblems(found)} of ${manifest.file}, which is not supported. Leave the stream out; the others run.`,
        )
      const createRun = (context: ConstructorParameters<typeof Run>[2]): Run =>
        new Run(name, fillSecrets(settings, context), context)
      const opened = openStream({ name, component: stream.component, session, createRun }, options)
      withoutRange(opened.execute, 'the manifest declares how its streams are read')
      return opened
    },
  }
}

function findStream(manifest: Manifest, name: string): ManifestStream {
  const stream = manifest.streams.find((candidate) => candidate.name === name)
  if (stream !== undefined) return stream
  const known = manifest.streams.map((candidate) => candidate.name)
  const dynamic = findRootProblems(manifest)
  const why = dynamic.length === 0 ? '' : ` Not supported: ${describeProblems(dynamic)}.`
  throw new SyncError(
    'SOURCE_NOT_FOUND',
    `${manifest.file} has no stream "${name}".${didYouMean(name, known)}${why} List its streams with \`tidemark discover\`.`,
  )
}
