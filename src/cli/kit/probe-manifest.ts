import type { ListReport } from '../../probe/probe-list.ts'
import type { DescribedUrl } from '../../probe/describe-url.ts'
import { formatRestManifest } from './rest-manifest.ts'

/** The manifest that reads a probed list with the recommended strategy. `auth` names its settings. */
export function formatProbeManifest(
  url: string,
  baseUrl: string,
  described: DescribedUrl,
  { recommendation, facts, notes }: ListReport,
  auth: object,
): string {
  const { stream, page } = described
  const { advice, settings, cautions } = recommendation
  const { key, name, updatedAt, path, records, query, time, lookup } = stream
  const sized = limitSize(page, settings.pageSizeMax)
  const hasLookup = facts.some(({ topic, value }) => topic === 'lookup' && value === 'found')
  const isGone = facts.some(({ topic, value }) => topic === 'lookup' && (value === '404' || value === '410'))
  const unread = facts.some(({ topic, value }) => topic === 'time-format' && value === 'text-without-zone')
  const cursor = unread || updatedAt === undefined ? null : String(updatedAt)
  const isFollowed = advice.delta?.strategy === 'window' && stream.follow?.kind === 'window' && cursor !== null
  const { since, until } = stream.follow?.kind === 'window' ? stream.follow : { since: '', until: undefined }
  const isReported = settings.deletedField !== null
  const options = {
    path,
    ...(records !== undefined && { records }),
    ...(query !== undefined && { query }),
    ...(time !== undefined && cursor !== null && { time }),
    ...(isReported && { deleted: settings.deletedField }),
    page: sized,
    ...(isFollowed && {
      follow: {
        kind: 'window',
        since,
        ...(until !== undefined && { until }),
        page: sized,
        ...(settings.overlapMs > DEFAULT_OVERLAP_MS && { overlap_ms: settings.overlapMs }),
      },
      lag_ms: settings.lagMs,
      ...(!isReported && { deletes: 'ignore' }),
    }),
    ...(hasLookup && isGone && lookup !== undefined && { lookup: { path: lookup.path } }),
  }
  return formatRestManifest({
    comments: [
      `Derived by \`tidemark probe\` from the answers of ${url}. Check what the comments say.`,
      ...notes,
      ...cautions.map((caution) => `Unsafe: ${caution}`),
      ...(unread
        ? ['The times have no zone, which the rest source cannot read; every cycle reads the complete list.']
        : []),
    ],
    config: { base_url: baseUrl, ...(Object.keys(auth).length > 0 && { auth }) },
    streams: [
      {
        id: name,
        key: String(key),
        cursor,
        options,
        comments: facts.filter(({ isWarning }) => isWarning).map(({ text, certainty }) => `${text} (${certainty})`),
      },
    ],
  })
}

/** The overlap of a window that sets none. */
const DEFAULT_OVERLAP_MS = 1_000

function limitSize(page: DescribedUrl['page'], max: number | null): object {
  const size = page.size as { readonly parameter: string; readonly value: number } | undefined
  return size === undefined || max === null ? page : { ...page, size: { ...size, value: Math.min(size.value, max) } }
}
