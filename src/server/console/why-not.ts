import { redactTidemark } from '../../redaction/redact-state.ts'
import { explainAbsence, type SourceLookupResult } from '../../runner/absence.ts'
import { lookUpKey, gatherAbsenceFacts, type KeyLookupRequest } from '../../runner/absence-facts.ts'
import { HttpError } from '../http-error.ts'
import { required } from '../../values/required.ts'
import { pathParam, type RouteRequest } from '../route.ts'
import type { AbsenceDocument } from './documents.ts'
import { toIso } from './sync-documents.ts'

/** The same answer as `tidemark why-not`. */
export async function explainMissingRow(routeRequest: RouteRequest): Promise<AbsenceDocument> {
  const {
    caller: { store },
    context,
  } = routeRequest
  const [database, key] = [pathParam(routeRequest, 'database'), pathParam(routeRequest, 'key')]
  const plans = context.syncs
    .map(({ plan }) => plan)
    .filter(({ databases }) => databases.some(({ name }) => name === database))
  if (plans.length === 0) return await describeForeignDatabase(routeRequest)
  const facts = await gatherAbsenceFacts(store, plans, {
    database,
    key,
    source: await lookUpInSource(routeRequest, plans),
  })
  const { verdict, why, advice, should } = explainAbsence(facts)
  return {
    database,
    key,
    verdict,
    why,
    advice,
    should,
    source: facts.source,
    syncs: facts.progress.map(({ sync, mode, tidemark, lastComplete }, index) => ({
      worker: required(plans[index], `the plan of ${sync}`).worker,
      sync,
      mode,
      tidemark: redactTidemark(tidemark, false),
      lastComplete:
        lastComplete === null ? null : { cycle: lastComplete.cycle, startedAt: toIso(lastComplete.startedAt) },
    })),
  }
}

/** Another worker writes the database, or none does any more. */
async function describeForeignDatabase(routeRequest: RouteRequest): Promise<AbsenceDocument> {
  const {
    caller: { store },
  } = routeRequest
  const [database, key] = [pathParam(routeRequest, 'database'), pathParam(routeRequest, 'key')]
  if (!(await store.databaseNames()).includes(database)) throw new HttpError('NOT_FOUND', 'Database not found.')
  const exists = (await store.row(database, key)) !== null
  return {
    database,
    key,
    should: null,
    syncs: [],
    source: { kind: 'unasked', reason: 'no sync of the worker that runs here writes this database.' },
    verdict: exists ? 'present' : 'unknown',
    why: exists ? `The row is in ${database}.` : 'No sync of the worker that runs here writes this database.',
    advice: `Run \`tidemark why-not ${database} ${key}\` with the worker that writes this database.`,
  }
}

/** Uses the credentials of the worker's own tenant, so other tenants are refused. */
async function lookUpInSource(
  routeRequest: RouteRequest,
  plans: KeyLookupRequest['plans'],
): Promise<SourceLookupResult> {
  const {
    caller: { store },
    context,
  } = routeRequest
  if (context.sourceRuntime === null || store.tenant !== context.tenant)
    return { kind: 'unasked', reason: 'lookups are available only to the tenant whose worker runs here.' }
  return await lookUpKey(context.sourceRuntime, context.stopping, {
    tenant: store.tenant,
    store,
    plans,
    database: pathParam(routeRequest, 'database'),
    key: pathParam(routeRequest, 'key'),
  })
}
