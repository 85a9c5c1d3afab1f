import { toCertificateDocument } from '../../verify/certificate-document.ts'
import type { RouteRequest } from '../route.ts'
import type { DatabaseFacts, PacerDocument, SyncDetailsDocument, SyncDocument } from './documents.ts'
import { toIso } from './sync-documents.ts'

/** The columns of more databases are not read. */
const DATABASES_MAX = 20

/** The parts of a sync that change seldom: the rate limits, columns and certificates of its databases. */
export async function readSyncDetails(
  { caller: { store }, context }: RouteRequest,
  { worker, sync, databases }: SyncDocument,
): Promise<SyncDetailsDocument> {
  const at = context.ports.clock.now()
  const plan = context.syncs.find((one) => one.plan.worker === worker && one.plan.sync === sync)?.plan
  const certificates = new Map((await store.lastVerifications()).map((one) => [one.database, one]))
  const facts: DatabaseFacts[] = []
  for (const name of databases.slice(0, DATABASES_MAX)) {
    const schema = await store.schema(name)
    facts.push({
      name,
      rows: schema?.rows ?? 0,
      isRowsExact: schema?.isRowsExact ?? true,
      columns: schema?.columns.length ?? 0,
      drift: (schema?.drift ?? []).map(({ member, kind, column, type, found, at: seenAt }) => ({
        member,
        kind,
        column,
        type,
        found,
        at: toIso(seenAt),
      })),
      certificate: toCertificateDocument(certificates.get(name)),
    })
  }
  return {
    pacers: plan === undefined || plan.pacers.length === 0 ? [] : await readPacers(),
    databases: facts,
    isCut: databases.length > facts.length,
  }

  async function readPacers(): Promise<PacerDocument[]> {
    const slots = await store.lastSlotTimes(worker)
    const { now, pauses } = await store.pauses({ worker, at })
    return (plan?.pacers ?? []).map(({ name, allowedRequests, intervalMs }) => {
      const aheadMs = Math.max(0, (slots[name] ?? 0) - now)
      const pause = pauses
        .filter(({ pacer, until }) => pacer === name && until > now)
        .toSorted((a, b) => b.until - a.until)[0]
      return {
        name,
        allowedRequests,
        intervalMs,
        reserved: Math.ceil(aheadMs / (intervalMs / allowedRequests)),
        lastSlotAt: toIso(slots[name] ?? null),
        pausedUntil: toIso(pause?.until ?? null),
      }
    })
  }
}
