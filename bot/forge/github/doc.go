// Package github speaks to GitHub and GitHub Enterprise Server: it reads
// threads and standings, posts comments, and decodes deliveries into neutral
// events. It knows nothing of the policy.
//
// Facts about the wire that shape this package, each held by a test of
// forgetest/conformance or of this package:
//   - every call on a repository is addressed by its id
//     (/repositories/{id}/…), the form to which GitHub's own redirects and
//     page links lead: a renamed repository needs no second look, and a name
//     given to another repository is never written to;
//   - so an answer of 301 to a thread means that the issue was transferred;
//     redirects are never followed;
//   - the client of go-github remembers rate limits by the wall clock and for
//     one token, so every call has a client of its own over one shared
//     http.Client, and the limits are kept here, for each account;
//   - its errors hold the server's words and URLs, so none is passed on.
//
// # Permissions
//
// GitHub's role is the answer's role_name (user.role_name on some versions),
// which go-github v62 does not read; permission is the older, coarser word
// beside it. Both are mapped and the lesser one counts:
//
//	role_name        permission   here
//	admin            admin        admin, or owner: see below
//	maintain         write        write
//	write (push)     write        write
//	triage           read         read
//	read (pull)      read         read
//	any other        as it says   by permission: a role an organisation made
//	                 anything else none
//
// An administrator is owner if the account owns the repository, or is an
// administrator ("owner") of the organisation that does. To see that takes the
// scope read:org, or Members: read; without it an owner counts as admin.
package github
