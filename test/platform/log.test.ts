import { describe, expect, test } from 'vitest'
import { createLog, LOG_LEVELS, parseLogLevel, type LogLevel } from '../../src/platform/log.ts'

function logged(level: LogLevel, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const lines: string[] = []
  write(createLog({ level, write: (line) => lines.push(line), now: () => 0 }))
  return lines
}

describe('the log', () => {
  test('Z18 is one line of JSON per message', () => {
    expect(
      logged('info', (log) =>
        log.info('landed', { page: 2, sync: 'all', resumed: false, cursor: null, none: undefined }),
      ),
    ).toEqual([
      '{"time":"1970-01-01T00:00:00.000Z","level":"info","message":"landed","page":2,"sync":"all","resumed":false,"cursor":null}\n',
    ])
  })

  test('respects its level', () => {
    const count = (level: LogLevel): number =>
      logged(level, (log) => {
        for (const name of ['debug', 'info', 'warn', 'error'] as const) log[name]('x')
      }).length
    expect(LOG_LEVELS.map(count)).toEqual([4, 3, 2, 1, 0])
  })

  test('Z16 takes plain values only: an object might carry a secret along', () => {
    const secret = 'canary-7f3a'
    const wrong = {
      object: { secret },
      array: [secret],
      error: new Error(secret),
      map: new Map([[secret, secret]]),
      big: 5n,
      call: () => secret,
      boxed: Object(secret) as unknown,
      sneaky: { toJSON: () => secret },
    } as never
    const [line] = logged('debug', (log) => log.debug('x', wrong))
    expect(line).not.toContain(secret)
    expect(JSON.parse(line!)).toMatchObject({ object: '[omitted]', sneaky: '[omitted]', call: '[omitted]' })
  })

  test('Z18 XF17 escapes control and direction characters, so that no value writes a line or a colour of its own', () => {
    const hostile = 'a\nb\r\u001b[31mred\u009b0m\u2028\u202edesrever\u0000\u007f\ud800'
    const [line] = logged('debug', (log) => log.debug(hostile, { [hostile]: hostile }))
    // oxlint-disable-next-line no-control-regex
    expect(line!.slice(0, -1)).toMatch(/^[\u0020-\u007e]*$/)
    expect(line!.slice(0, -1).split('\n')).toHaveLength(1)
    expect((JSON.parse(line!) as { message: string }).message).toBe(hostile)
  })

  test('Z18 XF17 truncates long values and long lists', () => {
    const fields = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, 'y'.repeat(100_000)]))
    const [line] = logged('debug', (log) => log.debug('x'.repeat(1_000_000), fields))
    expect(line!.length).toBeLessThan(100_000)
    expect(line).toContain('… (1000000 characters)')
  })

  test('a field cannot override the level, the time or the message', () => {
    const [line] = logged('debug', (log) =>
      log.error('real', { level: 'info', time: 'never', message: 'fake', __proto__: null } as never),
    )
    expect(JSON.parse(line!)).toEqual({ time: '1970-01-01T00:00:00.000Z', level: 'error', message: 'real' })
  })

  test('its level is read from text', () => {
    expect(parseLogLevel(' DEBUG ')).toBe('debug')
    expect(() => parseLogLevel('loud')).toThrow(
      expect.objectContaining({
        code: 'ARGUMENT_INVALID',
        message: expect.stringContaining('debug, info, warn, error, silent'),
      }),
    )
  })
})
