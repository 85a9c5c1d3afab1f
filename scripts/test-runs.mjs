// Joins the results of a test file's one or two runs, as vitest's JSON reporter writes them.

/**
 * The tests of a file with their state: 'failed' only when a test failed in every run that has it. A file that failed
 * outside of its tests (it could not be loaded, or a hook failed) counts as one more test.
 */
export function testsOfRuns(first, second) {
  const runs = [first, second].filter((run) => run !== undefined)
  const names = new Set(runs.flatMap((run) => run.assertionResults.map(nameOf)))
  const tests = [...names].map((name) => {
    const states = runs.flatMap((run) =>
      run.assertionResults.filter((test, index) => nameOf(test, index) === name).map(({ status }) => status),
    )
    return {
      name: `${first.name}: ${name}`,
      state: states.find((state) => state !== 'failed') ?? 'failed',
      failedOnce: states.includes('failed'),
    }
  })
  if (!runs.some(failedOutsideOfTests)) return tests
  return [
    ...tests,
    { name: first.name, state: runs.every(failedOutsideOfTests) ? 'failed' : 'loaded', failedOnce: true },
  ]
}

/** Two tests of a file may have the same title; their index distinguishes them. */
function nameOf({ fullName }, index) {
  return `${fullName} (${index + 1})`
}

function failedOutsideOfTests({ status, assertionResults }) {
  return status === 'failed' && !assertionResults.some((test) => test.status === 'failed')
}
