// Talking Stick for OpenCode. Written by `tt install opencode`, removed by `tt uninstall opencode`;
// changes made here are lost with the next install.
//
// It tells our programs which session a shell command belongs to, and wakes an idle session with
// its mail: our rewake program blocks beside each session, and what it prints becomes a prompt.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"

const PYTHON = "@PYTHON@"
const PROGRAM = "@PROGRAM@"
const WAKE = 2 // the code by which the program says that there is mail
const MOST_BYTES = 1024 * 1024

export const TalkingStick = async ({ client, directory }) => {
  const waiting = new Map() // session id → the program that blocks for it

  const variables = (session) => ({
    OPENCODE: "1",
    OPENCODE_PID: String(process.pid),
    TT_HARNESS_SESSION_ID: session,
  })

  const say = async (session, text) => {
    try {
      await client.session.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text }] } })
    } catch {
      // The mail stays unread and comes with the session's next look.
    }
  }

  const arm = (session, event) => {
    if (!session || waiting.has(session) || !existsSync(PROGRAM)) return
    const child = spawn(PYTHON, ["-I", "-S", PROGRAM, "rewake", "--harness", "opencode"], {
      cwd: directory,
      env: { ...process.env, ...variables(session) },
      stdio: ["pipe", "ignore", "pipe"],
    })
    waiting.set(session, child)
    let said = ""
    child.stderr.setEncoding("utf8")
    child.stderr.on("data", (piece) => { if (said.length < MOST_BYTES) said += piece })
    child.on("error", () => waiting.delete(session))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ hook_event_name: event, session_id: session, cwd: directory }))
    child.on("close", async (code) => {
      if (waiting.get(session) === child) waiting.delete(session)
      // The turn that this starts ends with session.idle, which arms again: never a loop of our own.
      if (code === WAKE && said.trim()) await say(session, said)
    })
  }

  const disarm = (session) => {
    const child = waiting.get(session)
    waiting.delete(session)
    if (child) child.kill()
  }

  process.on("exit", () => { for (const session of [...waiting.keys()]) disarm(session) })

  return {
    "shell.env": async (input, output) => {
      if (input.sessionID) Object.assign(output.env, variables(input.sessionID))
    },
    event: async ({ event }) => {
      const about = event.properties ?? {}
      if (event.type === "session.created" && !about.info?.parentID) arm(about.info?.id, "SessionStart")
      if (event.type === "session.idle" && !(await isChild(client, about.sessionID))) arm(about.sessionID, "Stop")
      if (event.type === "session.deleted") disarm(about.info?.id ?? about.sessionID)
    },
  }
}

// Sub-agents have sessions of their own, but no mail of their own.
const isChild = async (client, session) => {
  try {
    const found = await client.session.get({ path: { id: session } })
    return Boolean(found?.data?.parentID)
  } catch {
    return false
  }
}
