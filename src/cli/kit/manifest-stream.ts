import { dirname } from 'node:path'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import type { Environment } from '../../config/settings.ts'
import type { StreamDeclaration } from '../../sources/kit/define-source.ts'
import type { HttpClientOptions } from '../../sources/kit/http-client.ts'
import type { RestStream } from '../../sources/rest/stream.ts'

/** A stream of the `rest` source, and how its API is reached. */
export interface OpenedStream {
  readonly stream: RestStream
  readonly http: HttpClientOptions
}

/** The declaration of a sync in a manifest of the `rest` source; null for others, which are probed by their contract. */
export async function openManifestStream(
  path: string,
  shownFile: string,
  plan: SyncPlan,
  environment: Environment,
): Promise<OpenedStream | null> {
  const [{ readManifest }, { openProject }, { default: descriptor, toStream }] = await Promise.all([
    import('../../config/manifest/manifest.ts'),
    import('../../config/manifest/connectors.ts'),
    import('../../sources/rest/descriptor.ts'),
  ])
  const { connector, config, streams } = readManifest(path, shownFile, environment)
  const declared = streams.find(({ id }) => plan.databases.some(({ name }) => name === id))
  if (connector !== 'rest' || declared === undefined || plan.connection != null) return null
  const opened = (await descriptor.open(config, openProject(dirname(path)))) as { readonly options: HttpClientOptions }
  const stream = toStream(declared as StreamDeclaration)
  // A partition, an export or an event log has no single list that could be read twice.
  const isList = stream.partitions === undefined && stream.page.kind !== 'export' && stream.follow?.kind !== 'events'
  return isList ? { stream, http: opened.options } : null
}
