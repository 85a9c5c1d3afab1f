export const CASES_WITHOUT = ['sqlite', 'http', 'fleet']

export const CASES_WITH_POSTGRES = [
  'postgres',
  'tables',
  'partitions',
  'queries',
  'feed',
  'disk',
  'long',
  'scheduler',
  'destinations',
  'tenants',
  'compaction',
  'replica',
]
