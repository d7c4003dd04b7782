package playbook

import "testing"

func TestIsKill(t *testing.T) {
	deeds := []string{
		"pkill", "killall", "kill -9", "kill -9 4711", "Kill-9", "taskkill", "taskkill /F /IM node.exe", "systemctl kill mcp", "docker kill mcp",
		"sudo pkill", "/usr/bin/pkill", "kill", "kill process", "manual kill", "Stop-Process -Name node", "fuser -k 8080/tcp", "pkill -f mcp-search",
		"ran pkill -f mcp", "I killed the server", "we then force killed it", "manually killed the worker",
		"killed the process, came back broken", "did not help, so I ran pkill", "nothing worked and I had to killall node",
		"wouldn't answer – kill -9 4711", "it would not die so kill -9", "no luck with pkill", "no change after killall", "pkill did not help",
		"did not respond: pkill -9 mcp", "used `kill -9 812` on the worker", "nobody ran pkill, but I used killall later",
		"Did it reconnect? No. I ran pkill.", "sent SIGKILL to the worker", "worked only after pkill", "pkill'd the worker", "KILLALL node", "instead of pkill I ran killall",
		"could not reconnect, then pkill", "systemctl kill -s KILL mcp did nothing",
	}
	for _, s := range deeds {
		if !IsKill(s) {
			t.Errorf("IsKill(%q) = false", s)
		}
	}
	none := []string{
		"", "nobody ran pkill", "Nobody ran `pkill`.", "did not pkill anything", "didn’t run killall", "no pkill", "without pkill", "no one used kill -9",
		"never ran pkill or killall", "nobody ran pkill, killall or kill -9", "neither pkill nor killall was run", "restarted it instead of kill -9",
		"rather than pkill", "pkill was not used", "pkill is forbidden", "pkill was not used, still 404", "kill -9 was never run", "should I pkill it?", "pkill?", "tempted to pkill it",
		"please do not run killall", "must not pkill", "killed by the OOM killer", "the kernel killed the worker", "session was killed", "skilled work",
		"killswitch stayed off", "overkill", "client_reconnect", "still 404", "worker was OOM-killed", "avoided pkill", "refused to kill -9 it",
		"the watchdog had killed the process", "buzzkill", "I would pkill it if I were allowed",
	}
	for _, s := range none {
		if IsKill(s) {
			t.Errorf("IsKill(%q) = true", s)
		}
	}
}
