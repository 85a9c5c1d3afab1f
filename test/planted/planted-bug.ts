/** A small, realistic mistake, and the tests that must notice it. */
export interface PlantedBug {
  /** Unique; says what the mistaken code does. */
  readonly name: string
  /** From the root of the repository. */
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly text: string
  readonly replacement: string
  /** The fewest test files that should fail; from the root of the repository. */
  readonly tests: readonly string[]
  /** A regular expression: only tests with it in their title are run. For suites that take minutes. */
  readonly title?: string
}

/** The bugs of one file, with the tests and the title that all of them share unless a bug names its own tests. */
export function inFile(
  file: string,
  tests: readonly string[],
  bugs: ReadonlyArray<BugInFile>,
  shared?: string,
): PlantedBug[] {
  return bugs.map(([name, text, replacement, own, title = own === undefined ? shared : undefined]) => ({
    name,
    file,
    text,
    replacement,
    tests: own ?? tests,
    ...(title !== undefined && { title }),
  }))
}

type BugInFile = readonly [name: string, text: string, replacement: string, tests?: readonly string[], title?: string]
