import { AUTH_OPTION, HTTP_PACE, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'frontier.md',
  auth: 'A user access token with the scopes `bookmark.read`, `tweet.read` and `users.read`.',
  streams: [['bookmarks(options)', 'backfill and delta', 'the posts that the user has bookmarked, newest first']],
  lag: 'None assumed.',
  retention: 'No limit, but X lists the newest 800 only; a backfill of a fuller list fails and deletes nothing.',
  deletions: 'By the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'bookmarks(options)',
      file: 'bookmarks/source.ts',
      name: 'BookmarksOptions',
      members: {
        userId: [null, 'The account that granted the token.'],
        token: secretOption('The access token'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.x.com`', 'Base URL of the API.'],
        fields: [
          'author_id, created_at, conversation_id, lang, entities, referenced_tweets',
          'Fields of each post. Counts such as `public_metrics` change all the time and make every cycle a change.',
        ],
        since: [
          'everything',
          'A date or RFC 3339: posts that were written before it are not copied. X does not return when a post was bookmarked.',
        ],
      },
    },
  ],
} satisfies SourceReference
