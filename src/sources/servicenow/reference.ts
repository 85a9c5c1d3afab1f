import { AUTH_OPTION, HTTP_PACE, secretOption, SINCE_OPTION, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'User and password, or `auth`; the user needs to read the tables and `sys_audit`; `sys_db_object` and `sys_dictionary` for types and `discover`.',
  types:
    'From `sys_dictionary`, requested once in each cycle that has records: `glide_date_time` and `due_date` are `datetime`, in UTC; `glide_date` is `date`; `integer`, `longint`, `decimal` and `percent_complete` are `decimal`; all others are texts, also booleans (`true`, `false`) and durations. An empty value is SQL null in a column that is not text. `sys_id` is not null and unique. If the dictionary may not be read, the types are inferred from the values, with a log message.',
  streams: [
    [
      'servicenow(options).table(name, options)',
      'backfill and delta',
      'the records of a table; `fields` (all) and `safetyWindow` (none) as options',
    ],
  ],
  lag: '`lagMs`, 15 seconds by default.',
  retention: '`auditRetentionMs`, 30 days by default.',
  deletions: 'By the delta, from `sys_audit`, and by the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'servicenow(options)',
      file: 'servicenow/source.ts',
      name: 'ServicenowOptions',
      members: {
        instanceUrl: [null, '`https://example.service-now.com`.'],
        user: secretOption('The user; with `password`'),
        password: secretOption('The password'),
        auth: AUTH_OPTION,
        limit: ['100', 'Records of a page, 1 to 10,000.'],
        lagMs: [
          '15000',
          'Milliseconds that a change may take to become readable; not below one second, because times are whole seconds.',
        ],
        since: SINCE_OPTION,
        auditRetentionMs: ['2592000000', 'How long the instance keeps entries of `sys_audit`.'],
        metadata: ['true', 'Whether the types of columns are requested.'],
      },
    },
  ],
} satisfies SourceReference
