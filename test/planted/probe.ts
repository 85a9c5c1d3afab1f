import { inFile, type PlantedBug } from './planted-bug.ts'

const LIES = ['test/probe/lies.test.ts']
const VENDORS = ['test/probe/vendors.test.ts']
const SYNCS = ['test/probe/syncs.test.ts']
const CLI = ['test/cli/probe.test.ts']

/** The detectors of `tidemark probe`, its budget and its comparison with declarations. */
export const PROBE_BUGS: readonly PlantedBug[] = [
  ...inFile('src/probe/detect-bounds.ts', LIES, [
    ['probe: a filtered list that begins elsewhere counts as wrong', '&& at.next !== null', '&& at.next === null'],
    [
      'probe: an exclusive bound counts as inclusive',
      "value: isInclusive ? 'inclusive' : 'exclusive'",
      "value: 'inclusive'",
    ],
    [
      'probe: a filter without effect is not noticed',
      'if (outside.length > 0 && outside.every(',
      'if (outside.length > 1_000 && outside.every(',
    ],
    ['probe: a bound that returns some of its rows counts as inclusive', 'present.length < equal.length', 'false'],
    ['probe: a rounded bound is taken for another zone', 'floor !== bound &&', 'false &&'],
    ['probe: a shifted bound has no zone', 'flatMap((step) => listOffsets(step))', 'flatMap(() => [] as number[])'],
  ]),
  ...inFile('src/probe/detect-order.ts', LIES, [
    ['probe: an order by another field counts as ignored', 'kind?.test(value) === true', '/at/.test(value)'],
    ['probe: an ignored order is accepted', 'return requested === null', 'return requested !== undefined'],
    [
      'probe: an ignored direction is accepted',
      'if (other === direction && isSameOrder(',
      'if (other === null && isSameOrder(',
    ],
    [
      'probe: rows that change places are not noticed',
      'later.get(previous.key)?.index ?? 0)',
      'later.get(previous.key)?.index ?? 0) - 1_000',
    ],
    [
      'probe: other rows in each answer are not noticed',
      'if (gone.length > 0 && appeared.length > 0)',
      'if (gone.length > 1_000)',
    ],
  ]),
  ...inFile('src/probe/detect-pages.ts', LIES, [
    ['probe: lost ties are named as any lost rows', 'isTie(previous, row) || isTie(row, reference[at + 1])', 'false'],
    [
      'probe: rows lost at a border are not noticed',
      '.filter(({ key }) => !walked.has(key))\n  const [row] = lost',
      '.filter(() => false)\n  const [row] = lost',
    ],
    ['probe: a repeated last row is not noticed', 'page.rows[0]?.key !== last.key', 'page.rows[0]?.key !== undefined'],
    ['probe: an ignored page size is not noticed', 'rows.length > walkSize', 'rows.length > walkSize + 1_000'],
    [
      'probe: a short page is not noticed',
      'next !== null && rows.length < walkSize',
      'next !== null && rows.length < 0',
    ],
    [
      'probe: an early end is not noticed',
      'if (hasEnded && missing !== undefined)',
      'if (hasEnded && missing === null)',
    ],
    [
      'probe: an id on two pages is not noticed',
      'owner !== undefined && !isBorder &&',
      'owner?.page === page && !isBorder &&',
    ],
    [
      'probe: an id twice in a page is not noticed',
      'owner !== undefined && !isBorder &&',
      'owner !== undefined && owner.page !== page && !isBorder &&',
    ],
  ]),
  ...inFile('src/probe/detect-times.ts', LIES, [
    ['probe: times without a zone raise no warning', "value === 'text-without-zone' && {", 'false && {'],
    ['probe: rows newer than the clock are not noticed', 'if (aheadMs <= CLOCK_ERROR_MS)', 'if (aheadMs <= 1e15)'],
    ['probe: a wrong clock is not noticed', 'skewOf(entry) > CLOCK_ERROR_MS', 'skewOf(entry) > 1e15'],
    ['probe: a clock that goes back is not noticed', ' - 1_000)\n  if (late', ' - 1e15)\n  if (late'],
  ]),
  ...inFile('src/probe/detect-deletes.ts', LIES, [
    ['probe: a deleted row that is found raises no warning', 'flagged.row !== null && {', 'false && {'],
    ['probe: a lookup that finds any key raises no warning', '...(!isGone && {', '...(false && {'],
    [
      'probe: deleted rows behind a filter are not noticed',
      'found.length > 0 && others.length > 0',
      'found.length > 1_000',
    ],
  ]),
  ...inFile('src/probe/detect-rate-limits.ts', LIES, [
    ['probe: a limit without a number is accepted', '!/\\d/.test(value) && !isDate', 'false'],
  ]),
  ...inFile('src/probe/detect-late-rows.ts', LIES, [
    ['probe: a late row is not noticed', 'time.micros <= newest &&', 'time.micros < 0 &&'],
  ]),
  ...inFile('src/probe/request-journal.ts', LIES, [
    [
      'probe: a secret parameter is shown',
      'maskUrl(maskSecrets(decodeQuery(masked)))',
      'maskUrl(decodeQuery(`${url.origin}${url.pathname}${url.search}`))',
      CLI,
    ],
    ['probe: the budget is not kept', 'if (this.left <= 0)', 'if (this.left < -1_000)'],
  ]),
  ...inFile('src/probe/recommend.ts', LIES, [
    ['probe: a list that loses rows is recommended for changes', '&& unsafe.length === 0', ''],
  ]),
  ...inFile('src/probe/time-text.ts', VENDORS, [
    ['probe: seconds since 1970 are read as milliseconds', "value < 1e11 ? 's'", "value < 1e8 ? 's'"],
  ]),
  ...inFile('src/probe/probe-sync.ts', SYNCS, [
    ['probe: a range without its first rows is accepted', '!reading.isComplete || missing.length === 0', 'true'],
    ['probe: a lookup that finds nothing is accepted', 'this.#known.change !== null) return null', 'true) return null'],
    ['probe: a tidemark that is not true is accepted', 'row.time.micros <= tidemark.micros', 'row.time.micros < 0'],
    ['probe: the tidemark of a page of a listing counts', "this.#plan.mode === 'replace' &&", 'false &&'],
    ['probe: a row later than the lag is accepted', '+ lagMs < first.startedAt', '+ lagMs < 0'],
  ]),
  ...inFile('src/probe/compare-contract.ts', SYNCS, [
    [
      'probe: an exclusive filter does not contradict a timestamp paging',
      "&& filter.bound !== 'above'",
      "&& filter.bound === 'above'",
    ],
    ['probe: an untested fact contradicts', "|| fact.certainty === 'untestable'", ''],
  ]),
  ...inFile('src/cli/verbs/probe.ts', CLI, [
    ['probe: an unread list exits with 0', 'contradictions.length > 0 || isUnread', 'contradictions.length > 0'],
    ['probe: contradictions exit with 0', 'contradictions.length > 0 || isUnread ? 1 : 0', 'isUnread ? 1 : 0'],
    ['probe: a URL with a credential is sent', 'if (secret !== undefined)', 'if (false)'],
    ['probe: a dry run sends requests', 'if (flags.dryRun === true) return showPlan(cli, plan, flags.requests)', ''],
    ['probe: a manifest in the way is noticed after the requests', 'existsSync(out) &&', 'false &&'],
  ]),
]
