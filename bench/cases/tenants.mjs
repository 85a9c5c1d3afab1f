import { amount, median, percentile, ratio } from '../measures.mjs'

/** Many tenants with ten databases each on one PostgreSQL: a schema and twenty tables for each tenant. */
export const tenants = {
  title: 'Many tenants on one PostgreSQL, ten databases each',
  async run(bench) {
    const { tenants: count, turns } = bench.sizes
    const result = await bench.withDatabase((url) => bench.child('tenants.mjs', url, count, turns))
    const { few, many } = result
    const limit = `${few.tenants} tenants`
    const compare = (work, ours, raw) => ratio(work, limit, { ratio: raw / ours, ours, raw }, 'ms')
    const medians = (work, name) => compare(work, median(many[name]), median(few[name]))
    const fewMs = median(few.commitMs)
    return {
      ...result,
      measures: [
        compare(`commit of 100 rows, ${few.tenants} of ${count} tenants in turns`, median(many.sameMs), fewMs),
        medians(`commit of 100 rows, all ${count} tenants in turns`, 'commitMs'),
        compare('… 99 of 100', percentile(many.commitMs, 0.99), percentile(few.commitMs, 0.99)),
        medians('first commit of a tenant, ten databases', 'createMs'),
        medians('status of one tenant', 'statusMs'),
        medians('list of tenants', 'listMs'),
        amount('`status --all-tenants`', limit, { figure: many.statusAllMs, raw: few.statusAllMs }, 'ms'),
        amount('rows of pg_class', limit, { figure: many.catalog.classes, raw: few.catalog.classes }, 'rows'),
        amount('rows of pg_attribute', limit, { figure: many.catalog.attributes, raw: few.catalog.attributes }, 'rows'),
        amount('system catalogs', limit, { figure: many.catalog.mb, raw: few.catalog.mb }, 'MB'),
        amount('files of one database of a tenant', '–', { figure: many.tableKb }, 'KB'),
        amount('memory of the process', limit, { figure: many.processMb, raw: few.processMb }, 'MB'),
        amount('largest memory of a server connection', limit, { figure: many.backendMb, raw: few.backendMb }, 'MB'),
      ],
    }
  },
}
