import { redactTidemark } from '../../redaction/redact-state.ts'
import { explainAbsence, type SourceLookupResult } from '../../runner/absence.ts'
import { lookUpKey, gatherAbsenceFacts, type KeyLookupRequest } from '../../runner/absence-facts.ts'
import { HttpError } from '../http-error.ts'
import type { RouteRequest } from '../route.ts'
import type { AbsenceDocument } from './documents.ts'
import { toIso } from './sync-documents.ts'

/** The same answer as `tidemark why-not`. */
export async function explainMissingRow(ask: RouteRequest): Promise<AbsenceDocument> {
  const { caller: { store }, context: hall, params } = ask
  const [database, key] = [params['database']!, params['key']!]
  const plans = hall.syncs.map(({ plan }) => plan).filter(({ databases }) => databases.some(({ name }) => name === database))
  if (plans.length === 0) return await describeForeignDatabase(ask)
  const facts = await gatherAbsenceFacts(store, plans, { database, key, source: await lookUpInSource(ask, plans) })
  const { verdict, why, advice, should } = explainAbsence(facts)
  return {
    database, key, verdict, why, advice, should, source: facts.source,
    syncs: facts.progress.map(({ sync, mode, tidemark, lastComplete }, at) => ({
      worker: plans[at]!.worker, sync, mode, tidemark: redactTidemark(tidemark, false), lastComplete: lastComplete === null ? null : { cycle: lastComplete.cycle, startedAt: toIso(lastComplete.startedAt) },
    })),
  }
}

/** Another worker writes the database, or none does any more. */
async function describeForeignDatabase({ caller: { store }, params }: RouteRequest): Promise<AbsenceDocument> {
  const [database, key] = [params['database']!, params['key']!]
  if (!(await store.databaseNames()).includes(database)) throw new HttpError('NOT_FOUND', 'There is no such database.')
  const isThere = (await store.row(database, key)) !== null
  return {
    database, key, should: null, syncs: [], source: { kind: 'unasked', reason: 'no sync of the worker that runs here writes this database.' },
    verdict: isThere ? 'present' : 'unknown', why: isThere ? `${database} has it.` : 'No sync of the worker that runs here writes this database.', advice: `Run \`tidemark why-not ${database} ${key}\` where the worker is that writes it.`,
  }
}

/** Uses the credentials of the worker's own tenant, so other tenants are refused. */
async function lookUpInSource({ caller: { store }, context: hall, params }: RouteRequest, plans: KeyLookupRequest['plans']): Promise<SourceLookupResult> {
  if (hall.sourceRuntime === null || store.tenant !== hall.tenant) return { kind: 'unasked', reason: 'it is asked only for the tenant whose worker runs here.' }
  return await lookUpKey(hall.sourceRuntime, hall.stopping, { tenant: store.tenant, store, plans, database: params['database']!, key: params['key']! })
}
