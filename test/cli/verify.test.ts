import { describe, expect, test } from 'vitest'
import { people, Project } from './project.ts'

describe('tidemark verify', () => {
  test('certifies, shows what differs, and repairs it with --yes', async () => {
    const project = Project.withWorker({ people: people(5) })
    await project.ask('run', 'people-list')
    const equal = await project.ask('verify', 'people')
    expect(equal).toMatchObject({ code: 0 })
    expect(equal.stdout).toMatch(/equal {2}people, verification 1\ncompared +5 rows by listing/)

    project.source({ people: [...people(4), { id: 'p9', name: 'New' }] })
    const differs = await project.ask('verify', 'people', '--explain')
    expect(differs.stdout).toMatch(/p0005 +extra\? +recent/)
    expect(differs.stdout).toMatch(/p9 +missing\? +recent/)
    expect(differs.stdout).toMatch(/may have changed since the last cycle of people-list; run it and verify again/)

    const refused = await project.ask('verify', 'people', '--repair')
    expect(refused).toMatchObject({ code: 2 })
    expect(refused.stderr).toMatch(/Nothing was changed. Add --yes to land the source's records for these 2 rows/)
    const document = await project.json('verify', 'people', '--repair', '--yes')
    expect(document).toMatchObject({ verification: 4, outcome: 'repaired', repaired: 2, unsettled: 2 })
    expect((await project.ask('why', 'people', 'p9')).stdout).toMatch(/repaired by verification 4/)
    expect((await project.json('why', 'people', 'p9'))['history']).toMatchObject([{ verification: 4 }])

    expect((await project.ask('status')).stdout).toMatch(
      /✓ people: repaired when verified .* \(verification 4, 5 rows by listing\)/,
    )
    expect((await project.json('status'))['certificates']).toMatchObject([{ database: 'people', verification: 4 }])
  })

  test('a difference that outlives a cycle fails the command', async () => {
    const project = Project.withWorker({ people: people(3) })
    await project.ask('run', 'people-list')
    project.source({ people: people(4) })
    await project.ask('verify', 'people')
    // The listing of the cycle lacks the new record, and the one of the verification has it.
    project.source({ people: people(3) })
    await project.ask('run', 'people-list')
    project.source({ people: people(4) })
    const { code, stdout } = await project.ask('verify', 'people')
    expect(stdout).toMatch(/p0004 +missing +noTime/)
    expect(code).toBe(1)
    expect((await project.ask('status')).stdout).toMatch(/✗ people: different .*, 1 row differs/)
  })

  test.each([
    [['verify', 'poeple'], /No sync of the worker writes the database "poeple". Did you mean "?people/],
    [['verify', 'people', '--since', 'yesterday'], /--since is "yesterday". Write a date/],
    [['verify', 'people', '--since', '2026-01-01'], /cannot read a range of times/],
    [['verify', 'rooms', '--sample', '5'], /cannot look up single records/],
    [['verify', 'people', '--budget', '0'], /must be a whole number/],
    [['verify', 'people', '--full', '--sample', '5'], /cannot be used with/],
  ])('%j is refused with the reason', async (args, reason) => {
    const project = Project.withWorker({ people: people(2) })
    await project.ask('run')
    const { code, stderr } = await project.ask(...args)
    expect(stderr).toMatch(reason)
    expect(code).toBe(2)
  })

  test('a database that was never copied is not compared', async () => {
    const { code, stderr } = await Project.withWorker().ask('verify', 'people')
    expect(stderr).toMatch(/people was never copied. Run `tidemark run` first/)
    expect(code).toBe(2)
  })
})
