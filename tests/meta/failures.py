"""Failures that users of such systems really had, and the tests that would fail if we had them.

`COVERED`: what went wrong → tests (`folder/file.py::test_name`). `CANNOT`: why it cannot happen
here. `NOT_BUILT`: what does not exist yet and so has nothing to fail. `test_failures.py` checks
that every named test exists.
"""

from __future__ import annotations

_TURNS = "operations/test_turns.py::test_"
_JOIN = "operations/test_join.py::test_"
_MESSAGES = "operations/test_messages.py::test_"
_RECEIVE = "operations/test_receive.py::test_"
_STANDBY = "operations/test_standby.py::test_"
_VIEWS = "operations/test_views.py::test_"
_TASKS = "operations/test_tasks.py::test_"
_STATIONS = "operations/test_stations.py::test_"
_JOURNAL = "operations/test_journal.py::test_"
_LOOKS = "operations/test_failures_looks.py::test_"
_SESSIONS = "operations/test_failures_sessions.py::test_"
_PROCESSES = "processes/test_failures.py::test_"
_SHOW = "processes/test_must_show.py::test_"
_WAIT = "processes/test_wait.py::test_"
_RACES = "processes/test_races.py::test_"
_FLOOD = "processes/test_flood.py::test_"
_REFUSALS = "processes/test_refusals.py::test_"
_STATION_MAIL = "processes/test_station_mail.py::test_"
_SHIFT = "processes/test_shift.py::test_"
_SESSION = "hooks/test_session.py::test_"
_HOOKS = "hooks/test_failures_hooks.py::test_"
_PUBLISH = "hooks/test_publish.py::test_"
_BOARD = "hooks/test_board.py::test_"
_REWAKE = "hooks/test_rewake.py::test_"
_NATIVE = "hooks/test_native.py::test_"
_PLACES = "unit/test_places.py::test_"
_IDENTITY = "unit/test_identity.py::test_"
_PROCESS = "unit/test_process.py::test_"
_LOCKS = "unit/test_locks.py::test_"
_ENVELOPE = "unit/test_envelope.py::test_"
_MAIL = "store/test_mail.py::test_"
_HARNESSES = "install/test_harnesses.py::test_"
_EDIT = "install/test_edit.py::test_"
_SKILL = "install/test_skill.py::test_"
_TEXTS = "install/test_failures_texts.py::test_"
_INSTRUCTIONS = "install/test_instructions.py::test_"
_LIMITS = "rules/test_failures_limits.py::test_"
_HELP = "cli/test_help.py::test_"
_TABLE = "cli/test_table.py::test_"
_BODY = "cli/test_body.py::test_"
_RUN = "cli/test_run.py::test_"
_SOURCES = "meta/test_failures.py::test_"

LIFE = {
    "the same process, its start written in another way, was declared gone": (
        _PROCESS + "another_inexact_or_unreadable_start_proves_nothing",
        _PROCESS + "reused_pid_is_gone_by_another_exact_start",
    ),
    "one unlucky look at a process took a live turn away": (
        _TURNS + "gone_alone_takes_nothing",
        "rules/test_turn.py::test_gone_but_not_yet_silent_long_enough",
        _LIMITS + "one_reading_is_no_proof",
    ),
    "start times were read from the words of a localised program": (
        _PROCESS + "import_stays_small",
        _SOURCES + "nobody_looks_through_the_table_of_processes",
    ),
    "a client that changes its process between turns lost its turn to another": (
        _TURNS + "an_inferred_anchor_gets_ten_minutes",
        _TURNS + "unknown_is_never_surrendered",
    ),
    "the guardian kept a stuck holder looking busy": (_TURNS + "it_renews_the_lease_and_never_presence",),
    "a dead guardian made its living client look dead": (
        _VIEWS + "a_guardian_that_died_does_not_make_a_living_harness_look_dead",
    ),
    "a holder that waited again got a second guardian": (
        _TURNS + "an_owner_that_looks_again_gets_no_second_one",
        _RACES + "a_guardian_killed_later_is_replaced_by_one_of_those_who_wait",
    ),
    "a holder without a guardian lost its lease without a word": (
        _TURNS + "a_dead_one_is_replaced_by_the_owner",
        _TURNS + "a_dead_one_is_replaced_by_whoever_sweeps",
        _PUBLISH + "an_unguarded_lease_gets_a_guardian",
        _LIMITS + "a_guardian_renews_several_times_within_one_lease",
    ),
    "joining again overwrote lease and guardian": (_TURNS + "join_again_does_not_touch_the_lease",),
    "a turn was given before anything guarded it": (
        _TURNS + "without_a_guardian_nothing_is_granted",
        _RACES + "a_granter_that_dies_before_its_commit_leaves_neither_turn_nor_guardian",
        _RACES + "a_guardian_that_dies_around_the_commit_is_replaced_before_the_turn_is_told",
        "processes/test_crash_points.py::test_a_killed_guardian_starter_leaves_no_turn_behind",
    ),
    "a holder that died was noticed after a quarter of an hour": (
        _LIMITS + "a_holder_that_died_is_replaced_within_seconds",
        _SHOW + "a_blocked_peer_is_handed_the_turn_of_a_killed_holder",
    ),
    "a cleared conversation held the turn for ever": (_SESSION + "clear_surrenders_the_turn_with_a_recovery_handoff",),
    "two sessions of one process threw each other out": (
        _SESSIONS + "a_second_session_of_a_process_takes_nothing_from_the_first",
        _PROCESSES + "two_threads_of_one_client_are_two_members",
        _IDENTITY + "two_verified_sessions_in_one_process_stay_apart",
    ),
    "a forgotten listener brought an ended session back": (
        _HOOKS + "a_wait_of_a_session_that_ended_joins_nobody_again",
        _SESSION + "a_session_that_ended_answers_no_late_command",
        _SESSION + "a_publish_that_is_overtaken_by_the_end_revives_nothing",
    ),
    "clearing one thread of a shared daemon hit another one": (
        _SESSIONS + "clear_in_a_shared_daemon_takes_nothing_from_another_thread",
        _IDENTITY + "a_hook_of_the_shared_daemon_has_no_verified_anchor",
    ),
}

ORDER = {
    "whoever released took its own handoff back at once": (
        _TURNS + "the_releaser_does_not_take_it_back_at_once",
        _TURNS + "a_solo_owner_may_go_on",
        "rules/test_turn.py::test_cooldown_of_who_gave_it",
    ),
    "gaps that departures left turned the order round": (
        _TURNS + "sparse_ranks",
        "rules/test_fairness.py::test_ranks_matter_only_by_their_order",
    ),
    "the one whose turn it was had just looked, and lost its place": (
        _TURNS + "one_between_two_waits_does_not_lose_its_place",
        "rules/test_fairness.py::test_one_between_two_waits_is_not_passed_over",
    ),
    "turns were reserved for members that nothing could reach": (
        _TURNS + "who_is_no_candidate",
        _TURNS + "to_one_that_nothing_would_wake",
        "rules/test_fairness.py::test_only_who_can_be_reached_is_appointed_and_nobody_fairer_is_passed_over",
    ),
    "a reservation that ran out woke everybody": (
        _TURNS + "expires_once_and_the_handoff_stays",
        "rules/test_turn.py::test_a_reservation_is_never_offered_as_a_takeover",
        _WAIT + "a_takeover_is_offered_to_one_waiter_at_a_time_and_once",
    ),
    "an idle holder ended every endless wait": (
        _TURNS + "an_idle_owner_ends_only_an_explicit_time_out",
        _WAIT + "an_idle_owner_ends_no_wait_but_is_reported",
    ),
    "a lone listener took the turn and could not end": (
        _TURNS + "alone",
        _TURNS + "claim_takes_it_alone",
        _TURNS + "a_survivor_gets_the_turn_although_alone",
        _WAIT + "owning_and_being_alone_end_no_wait",
    ),
    "one's own release woke oneself, or filled the page instead of others' news": (
        _TURNS + "its_own_release_wakes_nobody_again",
        _VIEWS + "ones_own_are_not_for_oneself",
        _VIEWS + "filters_run_before_paging",
    ),
    "a parked listener was told of the same handoff again and again": (
        _TURNS + "a_parked_member_is_hinted_once",
        _WAIT + "a_parked_wait_is_told_once_of_a_pending_handoff",
    ),
    "parked members were given turns, and a holder could park": (
        _STANDBY + "a_parked_one_takes_nothing_and_attracts_nothing",
        _STANDBY + "the_owner_must_release_first",
        "rules/test_turn.py::test_a_parked_one_gets_only_what_is_reserved_for_it",
    ),
    "rooms of quiet but living agents were cleaned away": (_JOIN + "a_provably_live_member_keeps_it",),
    "the end of anybody's session threw a pending handoff away": (
        _SESSIONS + "the_end_of_a_session_leaves_a_pending_handoff_as_it_is",
        _TURNS + "of_one_that_goes_is_cleared_and_the_handoff_kept",
    ),
    "a holder's leave or kick threw a pending handoff away": (
        _JOIN + "a_pending_handoff_survives_its_owner",
        _JOIN + "a_pending_handoff_keeps_the_room",
        _TURNS + "a_dead_reader_keeps_its_handoff_for_the_next",
    ),
    "a release without words handed over filler": (
        _BODY + "missing_or_bad_options_are_named",
        _HELP + "bad_values_are_errors_with_their_own_code",
    ),
    "artifacts given as plain texts came out as nothing": (_BODY + "a_whole_handoff_from_stdin",),
    "a command that never started was taken for a handoff": (
        _SKILL + "it_says_what_it_must",
        _TEXTS + "the_skill_says",
    ),
    "a person's take stopped a working holder without a word": (
        _TURNS + "from_a_healthy_owner",
        _TURNS + "hands_over_what_the_revoked_owner_was_given",
    ),
    "of several claimers at once one lost its room, or two won": (
        _TURNS + "one_winner_among_many",
        _RACES + "of_two_granters_one_wins_and_the_losers_guardian_ends",
        _RACES + "a_join_that_meets_the_last_leave_leaves_a_usable_room",
    ),
    "agents without a task took the turn, or asked where nobody read": (_TEXTS + "the_skill_says",),
}

WAITING = {
    "a silent wait came back every other minute and cost a turn each time": (
        _SHOW + "blocked_waits_sleep_while_others_commit_and_only_the_addressee_wakes",
        "unit/test_bell.py::test_asleep_it_costs_nothing",
        _REWAKE + "while_blocked_it_costs_nothing",
    ),
    "each look of a wait wrote presence": (
        _PROCESSES + "a_wait_that_is_woken_for_others_writes_nothing",
        _TURNS + "a_look_at_a_held_turn_writes_nothing",
    ),
    "two waits of one member took each other's news": (
        _TURNS + "a_second_one_is_refused",
        _WAIT + "a_second_wait_is_refused_wherever_the_first_one_is",
        _RACES + "of_two_waits_that_start_at_once_one_is_refused",
    ),
    "a shell around a wait, or one of another room, counted as a second one": (
        _PROCESSES + "a_wait_behind_a_wrapper_is_no_second_one",
        _RACES + "a_refusal_never_names_a_dead_receiver",
    ),
    "a crashed listener stood in its successor's way, or took it off the list": (
        _LOCKS + "kill_frees_it_at_once",
        _RACES + "a_successors_row_survives_the_end_of_a_killed_wait",
        _WAIT + "a_second_wait_is_refused_wherever_the_first_one_is",
    ),
    "newcomers woke nobody, or every sign of life woke everybody": (
        _PROCESSES + "somebody_new_ends_a_wait_and_who_was_here_already_does_not",
        _JOIN + "others_are_told_of_a_new_member_once",
    ),
    "a crash or a full disk left half a file": (
        _PLACES + "failed_write_is_a_refusal_and_leaves_the_old_entry",
        _EDIT + "a_crash_before_the_rename_leaves_the_old_file_whole",
        "unit/test_notify.py::test_a_line_torn_by_a_full_disk_spoils_no_other",
    ),
    "a bare look at the log filled the context": (_VIEWS + "the_newest_fifty",),
    "a wait ignored messages, and holders missed what a person said": (
        _WAIT + "a_message_ends_a_wait_and_is_marked",
        _WAIT + "the_owner_is_told_what_comes_while_it_waits",
        _REWAKE + "a_person_and_an_interrupt_join_an_open_turn",
    ),
    "marked as read before it was printed, and lost with the pipe": (
        _RECEIVE + "what_was_not_flushed_comes_again",
        _RUN + "what_was_not_printed_is_not_marked",
        _SHOW + "a_message_that_could_not_be_printed_comes_again",
        _SHOW + "a_message_that_a_killed_wait_did_not_mark_comes_again",
        _SHOW + "a_grant_that_could_not_be_printed_is_given_back",
    ),
    "looks broke on rooms that were gone, and a new session inherited a cursor": (
        _PLACES + "room_of_a_deleted_bus_is_none",
        _WAIT + "a_wait_on_an_archived_room_is_refused",
        _SESSION + "two_terminals_never_share_an_agent",
        _SESSION + "clear_keeps_the_agent_and_voids_what_it_was_woken_for",
    ),
    "what a follower printed was swallowed, or came at its end": (
        _PROCESSES + "a_follower_prints_each_event_when_it_comes",
        _PROCESSES + "a_follower_of_all_hears_what_is_for_others_also_for_newcomers",
        _PROCESSES + "wait_for_one_event_ends_with_it",
    ),
    "a first receiver got the whole history": (
        _JOIN + "a_newcomer_starts_at_its_baseline",
        _MAIL + "a_later_member_starts_at_its_baseline",
    ),
    "an unknown room gave an empty list": (_LOOKS + "a_place_without_a_room_is_an_error_and_no_empty_answer",),
}

PLACES = {
    "shells of a harness came in as its user": (
        _IDENTITY + "every_marker",
        _IDENTITY + "a_dropped_marker_makes_no_person",
    ),
    "a client without a session id was somebody new at each command": (
        _IDENTITY + "session_keys",
        _IDENTITY + "process_comes_before_terminal",
    ),
    "a restarted client got the session before it": (
        _IDENTITY + "a_restarted_process_with_the_same_number_is_another_session",
        _IDENTITY + "grok_session_is_recorded_for_exactly_one_process",
    ),
    "a marker in the home directory joined unrelated folders": (
        _PLACES + "markers_in_home_do_not_count_below_it",
        _PLACES + "home_itself_can_be_joined_but_swallows_nothing",
    ),
    "a nested repository silently made a room of its own": (
        _PLACES + "nested_repository_uses_the_room_above_with_a_warning",
        _PLACES + "the_deepest_room_wins",
    ),
    "linked worktrees were split, submodules swallowed": (
        _PLACES + "linked_worktrees_meet_on_one_bus",
        _PLACES + "submodule_has_its_own_bus_unless_there_is_a_room_above",
        _SHOW + "worktrees_meet_on_one_bus_and_have_a_stick_each",
    ),
    "asking for a new room where one was did nothing and said nothing": (
        _JOIN + "force_new_says_when_it_had_no_effect",
    ),
    "a path option was ignored and the wrong room released": (
        "cli/test_quick.py::test_path_is_a_usage_error_where_it_is_an_argument",
        _REFUSALS + "a_path_gives_no_right",
    ),
    "a refused message left a made-up sender behind": (_MESSAGES + "nothing_is_written",),
    "careful readers looked dead": (
        _PROCESSES + "a_careful_reader_is_seen",
        _LIMITS + "who_reads_is_seen_long_before_it_looks_absent",
    ),
    "hook events in another spelling were missed": ("hooks/test_wire.py::test_every_spelling_is_one_event",),
    "who was kicked came back by its next command": (
        _JOIN + "an_explicit_join_rejoins",
        _WAIT + "a_kicked_sessions_wait_ends_with_unknown_member",
    ),
    "the room went while a console watched it": (_JOIN + "a_live_console_keeps_the_room_and_a_crashed_one_does_not",),
    "agents that had ended stayed on the list": (
        _JOIN + "an_ended_member_is_removed_after_an_hour",
        _JOIN + "an_owner_is_not",
    ),
}

COMMANDS = {
    "asking for help joined, claimed and started things": (
        _HELP + "every_level_has_help_with_an_example",
        _HELP + "help_wins_over_everything_that_would_act",
    ),
    "a switch took the next word for its value": (
        "cli/test_quick.py::test_both_readers_read_every_call_alike",
        "cli/test_quick.py::test_global_options_may_come_before_the_words",
    ),
    "a time was accepted as a number": (_TABLE + "numbers_are_strict", _TABLE + "other_durations_are_refused"),
    "errors were text where JSON was asked for": (
        _HELP + "misuse_is_an_object_in_json",
        "cli/test_output.py::test_who_gets_json",
    ),
    "unknown options were taken and swallowed a word": (_HELP + "misuse_is_a_usage_error_in_text",),
    "the shell expanded what was to be said": (
        _BODY + "stdin_is_taken_whole_but_for_its_last_line_end",
        _TEXTS + "the_skill_says",
    ),
    "a terminal that was not there failed the command or made noise": (
        _STANDBY + "nothing_would_wake_it",
        _STANDBY + "refused",
    ),
    "rows of the dead filled every view": (_VIEWS + "old_rows_are_hidden_and_counted",),
    "a health check printed pages": (_VIEWS + "a_card_is_short",),
    "the same reminder stood on every result": (_LOOKS + "a_hint_stands_only_where_something_is_to_be_done",),
}

DELIVERY = {
    "an interrupt changed nothing": (
        _NATIVE + "an_interrupt_goes_to_the_inbox_beside_a_monitor",
        _REWAKE + "a_person_and_an_interrupt_join_an_open_turn",
        _MESSAGES + "an_agents_interrupt_reaches_the_holder",
    ),
    "a wake that nobody took up silenced all later ones": (
        _STANDBY + "again_re_arms",
        _REWAKE + "a_stale_open_wake_is_replaced_by_newer_mail_only",
        _REWAKE + "a_receipt_that_leaves_mail_unread_rings_again",
    ),
    "a message that joined an earlier wake reported that one's outcome": (_NATIVE + "a_message_takes_the_inbox_once",),
    "text was typed into a terminal and never sent": (
        _NATIVE + "cmux",
        _NATIVE + "cmux_without_its_enter_is_ambiguous",
    ),
    "words for one session were typed into the next one's terminal": (
        _SESSIONS + "nothing_is_typed_where_the_session_is_gone",
        _SESSIONS + "nothing_is_typed_where_another_session_sits_now",
        _SESSION + "a_stale_endpoint_does_not_outlive_its_process",
        _NATIVE + "endpoints_end_with_their_session",
    ),
    "a body, a name or a path made lines of ours": (
        _ENVELOPE + "whatever_is_written_only_our_lines_are_unindented",
        _ENVELOPE + "a_label_is_harmless_and_bounded",
        _NATIVE + "a_forged_name_and_subject_stay_in_one_line",
        _FLOOD + "no_body_forges_a_line",
    ),
    "a recorder ran at every tool call": (
        _SESSION + "grok_sessions_are_recorded_once",
        _HARNESSES + "groks_files_and_the_line_that_it_shares_with_claudes_settings",
    ),
    "agents that spoke to the room woke each other for ever": (
        _MESSAGES + "an_agents_message_reaches_all_others_and_nobodys_bell",
    ),
    "after an unclear attempt the next way was tried too": (_NATIVE + "an_ambiguous_attempt_stops_the_chain",),
    "mail came between a listener's last look and its end": (
        _RACES + "a_message_between_a_waits_read_and_its_end_is_woken_anew",
        _RACES + "a_sender_that_probes_after_the_end_of_a_wait_wakes_by_itself",
        _REWAKE + "who_writes_while_it_ends_is_heard",
        _SHOW + "no_message_is_left_without_a_wake_while_waits_come_and_go",
    ),
    "a terminal's wrapper broke submissions to another client": (
        _HOOKS + "a_submission_to_codex_meets_no_wrapper_of_the_terminal",
    ),
    "what was only queued counted as a turn that had begun": (
        _NATIVE + "codex",
        "clients/test_codex.py::test_an_idle_codex_is_woken_through_its_queue",
    ),
    "receipts piled up for consoles that confirm nothing": (_MESSAGES + "a_console_gets_no_receipt_row",),
    "agents passed on what all had heard, and announced themselves": (_TEXTS + "the_skill_says",),
    "a person's word to the room reached only who was waiting": (
        _MESSAGES + "a_persons_message_is_one_event_that_wakes_all",
        _STANDBY + "a_persons_room_message_wakes",
        _MESSAGES + "who_comes_later_does_not_get_it",
    ),
}

STORE_AND_INSTALL = {
    "first starts at once collided in the migrations": (
        "store/test_schema.py::test_sixteen_processes_at_once_find_one_bus",
        "store/test_schema.py::test_an_older_database_is_brought_up_to_date_in_one_step",
        _SHOW + "sixteen_first_commands_at_once_make_one_sound_bus",
    ),
    "tests opened the user's own data": (
        "meta/test_isolation.py::test_a_test_that_touches_the_real_data_fails_the_session",
    ),
    "installing twice rewrote files, failed or chattered": (_HARNESSES + "everything_twice_and_back",),
    "an update overwrote what somebody had edited": (
        _SKILL + "a_known_copy_is_updated_and_an_edited_one_kept",
        _INSTRUCTIONS + "an_unedited_file_follows_and_an_edited_one_is_kept",
    ),
    "a heading of somebody else ran into a harness's section": (
        _INSTRUCTIONS + "a_foreign_heading_ends_a_section_and_is_for_all",
    ),
    "files were put where the client does not look": (_HARNESSES + "roots_from_the_environment_are_respected",),
    "folders were made for clients that are not there": (
        _HARNESSES + "absent_harnesses_are_skipped_and_nothing_is_made_for_them",
    ),
    "one skill lay in several places": (_SKILL + "only_duplicates_that_are_links_to_ours_are_pruned",),
}

TICKETS_AND_BOARD = {
    "a ticket that was off the table came back to life": (
        _TASKS + "a_cancelled_one_stays_cancelled",
        _TASKS + "every_move_from_every_state",
        _TASKS + "eight_who_change_one_ticket_at_once",
    ),
    "of two answers the last one won without a word": (
        _TASKS + "the_second_answer_is_told_the_first",
        _SHIFT + "a_shift",
    ),
    "a dead station stood as online for a quarter of an hour": (_SHIFT + "a_shift", _VIEWS + "owner_gone"),
    "cleaning up killed the shells of whoever cleaned": (
        _SOURCES + "nobody_looks_through_the_table_of_processes",
        "cli/test_failures_cli.py::test_the_demo_ends_nobody_who_only_names_its_folder",
    ),
    "what listened had died, and the station still looked well": (
        _LOOKS + "what_listened_is_not_believed_once_it_ended",
        "hooks/test_monitor.py::test_its_lock_dies_with_it",
    ),
    "a living monitor was now and then called dead": (
        _LOCKS + "a_held_lock_is_seen_by_every_probe",
        _LOCKS + "probers_never_make_hold_fail",
    ),
    "the log was full of its own bookkeeping": (_LOOKS + "reading_is_no_news",),
    "two sessions answered to one name, and nothing noticed": (
        _STATIONS + "variables_must_agree",
        _REFUSALS + "a_variable_makes_nobody_the_expo",
        _SESSION + "two_terminals_never_share_an_agent",
    ),
    "two sessions of one worktree wrote over each other": (
        _TURNS + "one_winner_among_many",
        _RACES + "a_holder_that_slept_through_a_takeover_can_record_nothing",
    ),
    "work for nobody in particular was never done": (
        _TASKS + "the_whole_way",
        _STATION_MAIL + "nobody_there_it_waits_for_who_comes",
    ),
    "a station that started anew saw none of its work in progress": (
        _TASKS + "stalled_is_derived_and_work_goes_on_at_the_station",
    ),
    "work was shown as going on that nobody did": (
        _TASKS + "stalled_is_derived_and_work_goes_on_at_the_station",
        _SHIFT + "a_shift",
    ),
    "a station could not be removed because of our own file in it": (
        _STATIONS + "a_seed_that_a_global_ignore_does_not_hide",
        _STATIONS + "clean",
        _STATIONS + "uncommitted",
    ),
    "a question without options could not be answered": (
        _TASKS + "free_text_is_always_possible",
        _LOOKS + "a_question_without_options_that_went_to_people_can_be_answered",
    ),
    "a mistyped name was written down as if it were somebody": (
        _TASKS + "refused",
        _REFUSALS + "the_halves_of_delegation",
    ),
    "a shared file was overwritten by who read it earlier": (
        _EDIT + "a_file_that_changes_meanwhile_is_read_again",
        "install/test_commands.py::test_two_installs_wait_for_each_other",
        "unit/test_notify.py::test_lines_of_many_processes_stay_whole",
    ),
    "a failure beside the point turned what was done into an error": (
        _RUN + "after_the_commit_nothing_changes_the_exit_code",
        _PUBLISH + "a_transcript_that_cannot_be_read_costs_nothing",
    ),
    "a path with blanks or a link in it ended the program silently": (
        _HOOKS + "a_hook_works_through_a_link_and_a_path_with_blanks",
        _HARNESSES + "paths_with_blanks_and_quotes_are_one_word",
    ),
    "tokens were counted several times, or those of sub-agents not at all": (
        _PUBLISH + "a_subagent_is_charged_once_per_message",
    ),
    "a wake was reported that had reached nobody": (
        _MESSAGES + "nobody_listens",
        _LOOKS + "a_delegation_to_one_that_nothing_wakes_says_so",
        _LOOKS + "every_route_that_costs_a_turn_is_counted",
    ),
    "tests read the developer's own settings": ("meta/test_isolation.py::test_home_and_data_are_scratch",),
    "an installation lacked files, and nothing said so": (
        _TEXTS + "the_package_holds_every_file_that_it_reads",
        "hooks/test_fail_open.py::test_a_package_that_is_removed_or_half_installed",
    ),
    "a harmless check looked through every process of the machine": (
        _SOURCES + "nobody_looks_through_the_table_of_processes",
    ),
    "a cancelled receive had marked what it never showed": (
        _WAIT + "a_signal_ends_a_wait_and_what_is_due_is_woken_anew",
        _SHOW + "a_message_that_a_killed_wait_did_not_mark_comes_again",
    ),
    "a message died with the pane in which it was waited for": (
        _SHOW + "a_background_wait_of_a_killed_client_marks_nothing",
        _BOARD + "what_nobody_could_read_stays_unread",
    ),
    "after a blocked receive the next message woke nobody": (
        _MAIL + "waking_mail_is_due_until_it_is_received",
        "store/test_wakes.py::test_open_while_it_covers_unread_mail",
    ),
    "with a quick reader the next message woke nobody": (
        _SHOW + "no_message_is_left_without_a_wake_while_waits_come_and_go",
        _REWAKE + "who_writes_while_it_ends_is_heard",
    ),
    "a question's wake used up the one for mail": (
        "store/test_wakes.py::test_seen_only_when_nothing_is_left",
        _REWAKE + "a_receipt_that_leaves_mail_unread_rings_again",
    ),
    "ten questions were ten wakes": (_TASKS + "ten_asks_while_the_expo_reads_none_are_one_wake",),
    "of two sessions at a place the second one saw no mail": (
        _RECEIVE + "everything_arrives_exactly_once",
        _STATION_MAIL + "one_of_two_waits_ends",
        _STATION_MAIL + "two_who_drain_at_once_get_each_item_once",
    ),
    "unknown, empty and mistyped names were accepted as delivered": (
        _MESSAGES + "nothing_is_written",
        _MESSAGES + "the_nearest_names_are_given",
        _TASKS + "refused",
    ),
    "a made-up name or a folder's name gave rights": (
        _REFUSALS + "no_way_around_the_hub",
        _STATIONS + "of_other_linked_worktrees",
    ),
    "two projects shared a bus": (
        _PLACES + "two_bare_repositories_in_one_folder_are_two_buses",
        _PLACES + "two_submodules_are_two_buses",
    ),
    "a subfolder made somebody else of the caller": (
        _PLACES + "a_subfolder_is_the_same_place",
        _STATIONS + "of_a_subfolder_and_of_a_room_in_it",
    ),
    "our own files were told as collisions, and one hid the others": (
        _PUBLISH + "presence_is_written_when_it_changed",
        _BOARD + "a_file_that_a_peer_in_another_worktree_changed_is_told_once",
        _BOARD + "a_file_name_forges_nothing_and_many_files_fit",
    ),
    "mail that was read was shown again at the next prompt": (
        _BOARD + "unread_mail_is_shown_whole_and_received_after_the_flush",
        _FLOOD + "the_delta_of_the_command_line_marks_what_it_showed",
        _REWAKE + "while_a_wait_lives_it_does_not_fire",
    ),
    "of many entries the board showed some and never the rest": (
        _FLOOD + "300_entries_between_two_prompts",
        _VIEWS + "after_a_cursor_nothing_is_skipped",
        _VIEWS + "the_newest_fifty",
    ),
    "what came before the first prompt was never shown": (
        _SESSION + "a_session_with_presence_is_reached_by_id_without_joining",
        _BOARD + "the_bus_may_be_younger_than_the_session",
    ),
    "a body forged lines of the board, and a long one came whole": (
        _BOARD + "a_forged_body_makes_no_line_of_ours",
        _BOARD + "too_much_mail_is_summed_up_once",
        _FLOOD + "no_body_forges_a_line",
    ),
    "a claim excluded nobody, because its process had ended": (
        _LOCKS + "of_many_takers_exactly_one_wins",
        _LOCKS + "a_stopped_holder_still_holds",
        "hooks/test_monitor.py::test_a_second_one_is_refused",
    ),
    "what was restored lacked its state, or hit another row": (
        _JOIN + "archived_with_what_was_pending_and_given_back_to_who_joins_later",
        _JOIN + "numbers_go_on",
    ),
    "a newcomer's first drain was all that was ever said": (
        _LOOKS + "a_newcomers_first_drain_is_small_however_long_the_history",
        _RECEIVE + "at_most_a_mebibyte_in_whole_events",
        _FLOOD + "40000_unread_messages",
    ),
    "a look took a working station's ticket away": (
        _TASKS + "stalled_is_derived_and_work_goes_on_at_the_station",
        _VIEWS + "by_looking",
    ),
    "one command said impossible and the other one did it": (
        _LOOKS + "every_view_and_every_send_agree_who_can_be_reached",
    ),
    "a question was reported as told although it could not be": (
        _LOOKS + "a_sender_is_told_when_not_even_the_line_could_be_written",
    ),
    "a hook's own process was taken for the session's": (
        _SESSION + "a_session_is_told_in_two_lines_how_the_bus_works",
        _PUBLISH + "codex_does_not_wait_for_publish",
    ),
    "the board's hash changed by itself and missed what counted": (
        _FLOOD + "the_hash_changes_with_each_fact_and_with_nothing_else",
    ),
    "a few deaf stations made the board slow": (_LOOKS + "a_board_of_many_deaf_ones_waits_for_nobody",),
    "a client's project folder was looked for under another name": (
        _JOURNAL + "the_folder_of_a_project",
        _JOURNAL + "names_with_times",
    ),
    "what was sent to a person had no reader": (
        _MESSAGES + "to_a_person_that_was_never_here",
        _TASKS + "escalated_it_waits_for_people",
    ),
}

COVERED = {**LIFE, **ORDER, **WAITING, **PLACES, **COMMANDS, **DELIVERY, **STORE_AND_INSTALL, **TICKETS_AND_BOARD}

CANNOT = {
    "stopping one program killed others whose path looked alike": (
        "nothing here ends a process by a pattern: a guardian ends with its lease, a listener with its client"
    ),
    "what is made for a station named a model that is no longer meant": (
        "the one file that a station is given holds two permission rules and names no model"
    ),
}

NOT_BUILT = {
    "a stuck copy of the books looked like a quiet day": "not built: books",
    "no pages although far behind": "not built: books",
    "a new address of the books orphaned all that was recorded": "not built: books",
    "an index was unreadable because its own name was changed": "not built: books",
    "a reader could leave the folder of the books": "not built: books",
    "the first copy of the books failed for want of a folder": "not built: books",
    "a forced copy without anything new was an error": "not built: books",
    "two machines rendered the same page differently": "not built: books and day pages",
    "every copy of the books was a commit, also without news": "not built: books",
    "several panes copied the books at once and all failed": "not built: books",
    "a server of an old installation did its work for weeks": "not built: MCP server; hooks start anew each time",
    "old seats kept old permissions": "not built: what is given to a station is never reconciled later",
    "one station learnt another's business from a ticket": "not built: nothing reads the text of a ticket",
    "a release's change log led nowhere": "not built: there is no change log",
}
