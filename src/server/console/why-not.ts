import { showTidemark } from '../../redaction/redact-state.ts'
import { judgeAbsence, type SourceSays } from '../../runner/absence.ts'
import { askForKey, gatherFacts, type AskedKey } from '../../runner/absence-facts.ts'
import { HttpError } from '../http-error.ts'
import type { Ask } from '../route.ts'
import type { AbsenceDocument } from './documents.ts'
import { iso } from './standing.ts'

/** Why a key is missing: what `tidemark why-not` says. */
export async function whyNot(ask: Ask): Promise<AbsenceDocument> {
  const { caller: { store }, hall, params } = ask
  const [database, key] = [params['database']!, params['key']!]
  const plans = hall.syncs.map(({ plan }) => plan).filter(({ databases }) => databases.some(({ name }) => name === database))
  if (plans.length === 0) return await notOurs(ask)
  const facts = await gatherFacts(store, plans, { database, key, source: await sourceSays(ask, plans) })
  const { verdict, why, advice, should } = judgeAbsence(facts)
  return {
    database, key, verdict, why, advice, should, source: facts.source,
    syncs: facts.coverage.map(({ sync, mode, tidemark, lastComplete }, at) => ({
      worker: plans[at]!.worker, sync, mode, tidemark: showTidemark(tidemark, false), lastComplete: lastComplete === null ? null : { cycle: lastComplete.cycle, startedAt: iso(lastComplete.startedAt) },
    })),
  }
}

/** Another worker writes it, or nobody does any more. */
async function notOurs({ caller: { store }, params }: Ask): Promise<AbsenceDocument> {
  const [database, key] = [params['database']!, params['key']!]
  if (!(await store.databaseNames()).includes(database)) throw new HttpError('NOT_FOUND', 'There is no such database.')
  const isThere = (await store.row(database, key)) !== null
  return {
    database, key, should: null, syncs: [], source: { kind: 'unasked', reason: 'no sync of the worker that runs here writes this database.' },
    verdict: isThere ? 'present' : 'unknown', why: isThere ? `${database} has it.` : 'No sync of the worker that runs here writes this database.', advice: `Run \`tidemark why-not ${database} ${key}\` where the worker is that writes it.`,
  }
}

/** With the credentials of the worker's own tenant, so for nobody else. */
async function sourceSays({ caller: { store }, hall, params }: Ask, plans: AskedKey['plans']): Promise<SourceSays> {
  if (hall.outside === null || store.tenant !== hall.tenant) return { kind: 'unasked', reason: 'it is asked only for the tenant whose worker runs here.' }
  return await askForKey(hall.outside, hall.stopping, { tenant: store.tenant, store, plans, database: params['database']!, key: params['key']! })
}
