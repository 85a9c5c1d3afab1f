import { expect, test } from 'vitest'
import { loadFrontier, MUTANTS } from './frontier-mutants.ts'

test.for(MUTANTS)('$name: found when it is planted, and only then', async ({ patches, find }) => {
  await using sound = await loadFrontier([])
  await using broken = await loadFrontier(patches)
  const finding = await find(broken.make)
  expect(finding).not.toBeNull()
  // The same worlds without the defect, up to the one that shows it.
  expect(await find(sound.make, finding!.worlds)).toBeNull()
  console.info(finding!.message)
})
