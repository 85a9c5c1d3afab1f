import { inFile, type PlantedBug } from './planted-bug.ts'

/** The simulation's own checks. */
export const SIMULATION_BUGS: readonly PlantedBug[] = inFile(
  'src/testing/simulation/oracle.ts',
  ['test/simulation/simulate.test.ts'],
  [
    [
      'a record that a page returned may be missing once the source has deleted it',
      "if (syncs.length > 1 || syncs.some(({ mode }) => mode === 'replace')) return",
      'return',
    ],
    [
      'a change that a page returned may be missing once the source has deleted its record',
      'version.v >= returned.v && isRowOfVersion',
      'isRowOfVersion',
    ],
    [
      'rows that only some readers can have are compared with the world without faults',
      '(reportsDeletions || latest?.deleted !== true)',
      'true',
    ],
    [
      'rows of deleted records are never compared with the world without faults',
      '(reportsDeletions || latest?.deleted !== true)',
      'latest?.deleted !== true',
    ],
  ],
  'a world',
)
