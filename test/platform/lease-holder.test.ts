import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import { expect, test } from 'vitest'
import { holderName, isHolderGone, parseHolder, serviceHolderName } from '../../src/platform/lease-holder.ts'

const { pid: gonePid } = spawnSync(process.execPath, ['--version'])

test('a holder of an exited process is gone, whatever its kind, instance and run', () => {
  const gone = `${hostname()}:${gonePid}:0af1`
  const kinds = ['', 'cli:', 'console:', 'webhook:', 'restate/default:']
  for (const kind of kinds)
    for (const end of ['', '#7', '#run3', '.2', '.2#7']) {
      expect(isHolderGone(`${kind}${gone}${end}`), `${kind}…${end}`).toBe(true)
      expect(isHolderGone(`${kind}${holderName()}${end}`), `${kind}…${end} of this process`).toBe(false)
    }
  expect(isHolderGone(`other-host:${gonePid}:0af1`)).toBe(false)
  expect(isHolderGone('a name of another format')).toBe(false)
  // The previous process with this pid, as after a restart of a container.
  expect(isHolderGone(`${hostname()}:${process.pid}:0af1`)).toBe(true)
})

test('every service of a process has a name of its own', () => {
  const names = [serviceHolderName(), serviceHolderName(), serviceHolderName()]
  expect(new Set(names).size).toBe(3)
  expect(names[0]).toBe(holderName())
  expect(parseHolder(names[2]!)).toEqual({ host: hostname(), pid: process.pid })
})
