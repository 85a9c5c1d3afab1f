import { SyncError, type Commit, type CommitOutcome } from '../contract/index.ts'
import type { CommitBuilder } from './commit-builder.ts'
import type { CycleContext } from './cycle-context.ts'
import type { CycleEvent } from './cycle-machine.ts'
import type { OpenCycle } from './open-cycle.ts'
import type { FetchedPage } from './page-reader.ts'
import { holdTidemark, type PageTransition } from './page-transition.ts'
import { MOVED_LOOKUPS_MAX } from './partition-sweep.ts'
import type { SyncPlan } from './sync-plan.ts'
import type { SourceLookups } from './source-lookups.ts'
import { withoutAbsenceCheck, type SweepRefusal } from './sweep.ts'
import { required } from '../values/required.ts'

export type LandedOutcome = Extract<CommitOutcome, { kind: 'landed' }>
type SettledOutcome = Exclude<CommitOutcome, { kind: 'fenced' | 'conflict' }>

/** A sample does not prove that none of the others moved to another partition. */
function tooManyAbsentError({ sync }: SyncPlan, count: number): SyncError {
  return new SyncError(
    'LISTING_INCOMPLETE',
    `${sync}: the source did not return ${count} rows of these partitions, more than ${MOVED_LOOKUPS_MAX}, which are looked up one by one; none were deleted. Run a complete cycle to delete them.`,
  )
}

export interface PageCommitOptions {
  readonly context: CycleContext
  readonly open: OpenCycle
  readonly lookups: SourceLookups
  readonly read: FetchedPage
  readonly transition: PageTransition
  readonly drift: readonly string[]
  readonly commitBuilder: CommitBuilder
}

/**
 * The commit of one page and its last outcome. If the listing alone does not decide, the source's lookup is called and
 * the page is committed again.
 */
export class PageCommit {
  readonly #context: CycleContext
  readonly #open: OpenCycle
  readonly #lookups: SourceLookups
  readonly #commitBuilder: CommitBuilder
  readonly read: FetchedPage
  /** As it was built; a lookup may change the one in the commit. */
  readonly transition: PageTransition
  readonly drift: readonly string[]
  #commit: Commit
  #outcome: SettledOutcome | null = null
  #presentKey: { readonly key: string; readonly absent: number } | null = null

  constructor({ context, open, lookups, read, transition, drift, commitBuilder }: PageCommitOptions) {
    this.#context = context
    this.#open = open
    this.#lookups = lookups
    this.read = read
    this.transition = transition
    this.drift = drift
    this.#commitBuilder = commitBuilder
    this.#commit = commitBuilder.build(open, read, transition, drift)
  }

  /** Orders the page against running listings and sends it: before the source returns the page that is read ahead. */
  async orderAndSend(): Promise<CycleEvent> {
    const { checked, prepared } = this.read
    if (checked.isLog || prepared.landings.length > 0)
      this.#commit = {
        ...this.#commit,
        ...(await this.#commitBuilder.orderAgainstListings(this.#open, this.read)),
      }
    return await this.send()
  }

  async send(): Promise<CycleEvent> {
    const { trace, retryingStore } = this.#context
    const outcome = await trace.traceCommit(this.read.trace, () => retryingStore.commit(this.#commit))
    this.#outcome = outcome
    switch (outcome.kind) {
      case 'landed':
      case 'overlap':
        return outcome.kind
      case 'contested':
      case 'absent':
        return 'undecided'
      case 'massDeleteBlocked':
        return 'sweepRefused'
    }
    return outcome satisfies never
  }

  /** Legal after `undecided`. */
  async lookUpRows(): Promise<CycleEvent> {
    const { request, prepared } = this.read
    const commit = this.#commit
    if (this.#outcome?.kind === 'absent') {
      const { keys, count } = this.#outcome
      if (this.#context.plan.partitions !== undefined && keys.length < count)
        throw tooManyAbsentError(this.#context.plan, count)
      const key = await this.#lookups.findPresent(request.cycle, keys)
      if (key !== null) {
        this.#presentKey = { key, absent: count }
        return 'sweepRefused'
      }
      this.#commit = { ...commit, transition: withoutAbsenceCheck(commit.transition) }
      return 'answered'
    }
    const { keys } = this.#requireOutcome('contested')
    const answers = await this.#lookups.checkContested(request.cycle, keys, prepared.landings)
    const isDecided = answers.confirmed.length + answers.refuted.length === keys.length
    this.#commit = {
      ...commit,
      transition: isDecided ? commit.transition : holdTidemark(this.#open, commit.transition),
      listing: { settledSequence: this.#open.settledSequence, lookupAnswers: answers },
    }
    return 'answered'
  }

  /** Legal after `landed`. */
  get landed(): LandedOutcome {
    return this.#requireOutcome('landed')
  }

  /** Legal after `overlap`. */
  get overlapKeys(): readonly string[] {
    return this.#requireOutcome('overlap').keys
  }

  /** Legal after `sweepRefused`. */
  get refusal(): SweepRefusal {
    return this.#presentKey === null
      ? this.#requireOutcome('massDeleteBlocked')
      : { kind: 'incomplete', ...this.#presentKey }
  }

  #requireOutcome<Kind extends SettledOutcome['kind']>(kind: Kind): Extract<SettledOutcome, { kind: Kind }> {
    const outcome = this.#outcome?.kind === kind ? this.#outcome : null
    return required(outcome, `outcome ${kind}`) as Extract<SettledOutcome, { kind: Kind }>
  }
}
