// Package crashtest proves on real processes that nothing is lost and nothing
// is said twice: the program is built with failpoints, run against the fake
// forge over loopback HTTP and on both databases, and killed by SIGKILL,
// frozen by SIGSTOP or cut off from its database at every boundary of the
// ledger. It holds tests only.
//
// What is counted: a question is a text of a person that must get an answer;
// an answer is a genuine comment of the bot's that lasts once all is quiet;
// a duplicate is a second answer to one question, or one to no question; a
// loss is a question without an answer, a record missing from the log, or an
// audit chain that does not hold together.
//
//	go test -v ./bot/crashtest -run Matrix         the table
//	go test -v ./bot/crashtest -run Soak -soak=100 -soak.seed=7
//	go test -v ./bot/crashtest -run Rebuild -rebuild.threads=500
//	go test -v ./bot/crashtest -run Backlog -backlog=100000 -timeout 1h
//
// A soak prints its seed, by which its choices (who says what, where the next
// kill falls) are repeated; what the scheduler makes of them is not.
package crashtest
