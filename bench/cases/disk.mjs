import { ratio } from '../measures.mjs'

/**
 * Bytes of the table with its history, and bytes written to get there. It has no target: it is for information only.
 */
export const disk = {
  title: 'Bytes on disk and bytes written',
  async run(bench) {
    const { records, page } = bench.sizes
    const [measures, details] = [[], {}]
    for (const [kind, name, log] of [
      ['sqlite', 'SQLite', 'bytes written'],
      ['postgres', 'PostgreSQL', 'WAL'],
    ]) {
      const result = await bench.store(kind, (url) => bench.child('disk.mjs', url, records, page))
      details[kind] = result
      const compare = (work, ours, raw) =>
        ratio(`${name}: ${work}`, 'bare keyed table', { ratio: ours / raw, ours, raw }, 'B/row')
      measures.push(
        compare('disk after the first load', result.first.disk, result.raw.disk),
        compare('disk after 100 % changed', result.changed100.disk, result.raw.disk),
        compare(`${log}, first load`, result.first.written, result.raw.written),
        compare(`${log}, unchanged`, result.unchanged.written, result.raw.written),
        compare(`${log}, 100 % changed`, result.changed100.written, result.raw.written),
      )
    }
    return { ...details, measures }
  },
}
