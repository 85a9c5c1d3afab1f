import { inFile, type PlantedBug } from './planted-bug.ts'

/** The recorded results of campaigns. */
export const CAMPAIGN_BUGS: readonly PlantedBug[] = inFile(
  'scripts/campaign-results.mjs',
  ['test/structure/campaigns.test.ts'],
  [
    [
      'a campaign repeats the seeds of an earlier run',
      'Math.max(1, ...runs.map(({ nextSeed }) => nextSeed))',
      'runs.at(-1)?.nextSeed ?? 1',
    ],
    [
      'violations of earlier runs are not counted',
      "violations: sum('violations')",
      'violations: parts.at(-1)?.violations ?? 0',
    ],
  ],
)
