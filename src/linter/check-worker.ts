import { required } from '../values/required.ts'
import { readFileSync } from 'node:fs'
import type { WorkerLike } from '../worker/worker.ts'
import { type Finding } from './findings.ts'
import { lintObservation } from './lint-observation.ts'
import { observeSync, type ObserveOptions, type DatabaseEnvironment } from './observe-sync.ts'
import { readWorkerText } from './worker-text.ts'

export interface WorkerCheck {
  /** Findings about the file as a whole. */
  readonly findings: readonly Finding[]
  readonly syncs: readonly SyncCheck[]
}

export interface SyncCheck {
  readonly sync: string
  readonly mode: string
  readonly pages: number
  readonly requests: number
  readonly changes: number
  readonly findings: readonly Finding[]
  /** Findings suppressed by a `tidemark-ignore` comment in the worker. */
  readonly ignored: readonly Finding[]
}

export interface CheckOptions extends ObserveOptions {
  /** Default: all syncs of the worker. */
  readonly syncs?: readonly string[]
  readonly onProgress?: (sync: string) => void
}

export async function checkWorker(worker: WorkerLike, options: CheckOptions): Promise<WorkerCheck> {
  const text = readWorkerText(readFileSync(options.workerFile, 'utf8'))
  const names =
    options.syncs === undefined || options.syncs.length === 0
      ? worker.manifest.syncs.map(({ name }) => name)
      : options.syncs
  // Resolves all names first, so that an unknown name fails before the first request.
  const plans = names.map((name) => worker.plan(name))
  const syncs: SyncCheck[] = []
  for (const plan of plans) {
    options.onProgress?.(plan.sync)
    const observation = await observeSync(plan, environmentOf(worker, plan.sync, text.mentionsDeletes), options)
    const pages = observation.cycles.flatMap((cycle) => cycle.pages)
    const found = lintObservation(observation)
    syncs.push({
      sync: plan.sync,
      mode: plan.mode,
      pages: pages.length,
      requests: observation.requests,
      changes: pages.reduce((sum, { changes }) => sum + changes.length, 0),
      findings: found.filter(({ finding }) => !text.isIgnored(plan.sync, finding)),
      ignored: found.filter(({ finding }) => text.isIgnored(plan.sync, finding)),
    })
  }
  return { findings: text.findings, syncs }
}

function environmentOf(worker: WorkerLike, name: string, mentionsDeletes: boolean): DatabaseEnvironment {
  const { syncs } = worker.manifest
  const own = required(
    syncs.find((sync) => sync.name === name),
    `sync ${name}`,
  )
  const others = syncs.filter(
    (sync) => sync !== own && sync.databases.some((database) => own.databases.includes(database)),
  )
  return { otherWriters: others.length, isSwept: mentionsDeletes || others.some(({ mode }) => mode === 'replace') }
}
