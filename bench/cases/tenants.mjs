import { amount, median, percentile, ratio } from '../measures.mjs'

/** Many tenants with ten databases each on one PostgreSQL: a schema and twenty tables for each tenant. */
export const tenants = {
  title: 'Many tenants on one PostgreSQL, ten databases each',
  async run(bench) {
    const { tenants: count, turns } = bench.sizes
    const result = await bench.withDatabase((url) => bench.child('tenants.mjs', url, count, turns))
    const { few, many } = result
    const compare = (work, limit, ours, raw) => ratio(work, limit, { ratio: raw / ours, ours, raw }, 'ms')
    const fewMs = median(few.commitMs)
    return {
      ...result,
      measures: [
        compare(`commit of 100 rows, ${few.tenants} of ${count} tenants in turns`, `${few.tenants} tenants`, median(many.sameMs), fewMs),
        compare(`commit of 100 rows, all ${count} tenants in turns`, `${few.tenants} tenants`, median(many.commitMs), fewMs),
        compare('… 99 of 100', `${few.tenants} tenants`, percentile(many.commitMs, 0.99), percentile(few.commitMs, 0.99)),
        compare('first commit of a tenant, ten databases', `the first ${few.tenants}`, median(many.createMs), median(few.createMs)),
        compare('status of one tenant', `${few.tenants} tenants`, median(many.statusMs), median(few.statusMs)),
        compare('list of tenants', `${few.tenants} tenants`, median(many.listMs), median(few.listMs)),
        amount('`status --all-tenants`, the whole command', '–', { figure: many.statusAllMs, raw: few.statusAllMs }, 'ms'),
        amount('rows of pg_class', '–', { figure: many.catalog.classes, raw: few.catalog.classes }, 'rows'),
        amount('rows of pg_attribute', '–', { figure: many.catalog.attributes, raw: few.catalog.attributes }, 'rows'),
        amount('system catalogs', '–', { figure: many.catalog.mb, raw: few.catalog.mb }, 'MB'),
        amount('files of one database of a tenant', '–', { figure: many.tableKb }, 'KB'),
        amount('memory of the process', '–', { figure: many.processMb, raw: few.processMb }, 'MB'),
        amount('largest memory of a server connection', '–', { figure: many.backendMb, raw: few.backendMb }, 'MB'),
      ],
    }
  },
}
