// Package github speaks to GitHub and GitHub Enterprise Server: it reads
// threads and standings, posts comments, and decodes deliveries into neutral
// events. It knows nothing of the policy.
package github

import _ "github.com/google/go-github/v62/github" // the API's types and requests
