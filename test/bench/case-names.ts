export const CASES_WITHOUT = ['sqlite', 'http', 'embed', 'fleet']

export const CASES_WITH_POSTGRES = [
  'postgres',
  'tables',
  'partitions',
  'queries',
  'explorer',
  'feed',
  'disk',
  'long',
  'scheduler',
  'destinations',
  'tenants',
  'compaction',
  'replica',
]
