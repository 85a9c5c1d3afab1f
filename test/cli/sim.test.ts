import { expect, test } from 'vitest'
import { Project } from './project.ts'

test('sim says how many worlds, how fast and which faults; the same seeds give the same digest', { timeout: 180_000 }, async () => {
  const project = new Project()
  const first = await project.json('sim', '--seeds', '5')
  expect(first).toMatchObject({ seeds: 5, first_seed: 1, failures: [] })
  expect((await project.json('sim', '--seeds', '5'))['digest']).toBe(first['digest'])
  expect((await project.run('sim', '--seeds', '2', '--first-seed', '7')).stdout).toMatch(/^2 worlds from seed 7 · .+ a second · .+ faults injected/)
})
