import { readFileSync } from 'node:fs'

const MS_PER_TICK = 10

/** Milliseconds of processor time that a local PostgreSQL spent on the raw connection and on the others; else 0. */
export async function connectionCpu({ client }) {
  if (client === undefined) return { raw: 0, ours: 0 }
  const { rows } = await client.query(`select pid, pid = pg_backend_pid() as raw from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'`)
  const sum = { raw: 0, ours: 0 }
  for (const { pid, raw } of rows) sum[raw ? 'raw' : 'ours'] += ticksOf(pid) * MS_PER_TICK
  return sum
}

function ticksOf(pid) {
  try {
    // pid (name) state …; utime and stime are fields 14 and 15, and the name may contain spaces.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return Number(fields[11]) + Number(fields[12])
  } catch {
    return 0 // The server is on another machine, or the connection has ended.
  }
}
