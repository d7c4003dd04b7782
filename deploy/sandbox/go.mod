// The sandbox is a module of its own so that `go test ./...` at the root needs
// neither Gitea nor minutes.
module playbook-bot/deploy/sandbox

go 1.26.0

require code.gitea.io/sdk/gitea v0.25.1

replace playbook-bot => ../..
