import { amount, median, percentile, ratio } from '../measures.mjs'

/** The effect of compaction on the commits of the same tenant and of another. */
export const compaction = {
  title: 'Compaction of a history in PostgreSQL, nine of ten entries replaced, while pages of 100 are committed',
  async run(bench) {
    const { records, seconds } = bench.sizes
    const result = await bench.withDatabase((url) => bench.child('compaction.mjs', url, records, seconds))
    const { removed, steps, tookMs, commits } = result
    const during = (share) => {
      const [ours, raw] = ['own', 'other'].map((whose) => percentile(commits[whose].during, share))
      return { ratio: raw / ours, ours, raw }
    }
    return {
      ...result,
      measures: [
        amount('entries removed', '–', { figure: removed }, 'rows'),
        amount('time', '–', { figure: tookMs / 1_000 }, 's'),
        amount('a step, median', '–', { figure: median(steps) }, 'ms'),
        amount('a step, at most', '–', { figure: Math.max(...steps) }, 'ms'),
        ratio('a commit meanwhile, median', 'of another tenant', during(0.5), 'ms'),
        ratio('a commit meanwhile, 99 of 100', 'of another tenant', during(0.99), 'ms'),
      ],
    }
  },
}
