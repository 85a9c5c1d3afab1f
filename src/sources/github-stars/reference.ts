import { AUTH_OPTION, HTTP_PACE, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'frontier.md',
  auth: 'A token; for the stars of another user any token is sufficient.',
  streams: [['githubStars(options)', 'backfill and delta', 'the repositories that the user has starred, newest first']],
  lag: 'None assumed.',
  retention: 'No limit.',
  deletions: 'By the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'githubStars(options)',
      file: 'github-stars/source.ts',
      name: 'GithubStarsOptions',
      members: {
        token: secretOption('A token'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.github.com`', 'Of an Enterprise server: `https://github.example.com/api/v3`.'],
        user: ['the owner of the token', 'The user whose stars are read.'],
        since: ['everything', 'A date or RFC 3339: older stars are not read.'],
      },
    },
  ],
} satisfies SourceReference
