"""The default trigger words and phrases of the policy, Chinese and English.

Data only. `policy.Triggers` says how each list is read.
Source: DESIGN sections 5 and 8.
"""

from __future__ import annotations


def words(*lines: str) -> tuple[str, ...]:
    """Split comma-separated lines of default words."""
    return tuple(word.strip() for line in lines for word in line.split(",") if word.strip())


INTENT_VERBS = words(
    "开发, 构建, 设计, 部署, 迁移, 重构, 分析, 调研, 实现, 搭建, 创建, 优化",
    "develop, build, design, deploy, migrate, refactor, analyse, analyze, research",
    "implement, set up, create, optimise, optimize",
)
SCOPE_WORDS = words(
    "整个, 全部, 系统, 架构, 从零开始, 端到端, 完整, 全面, 整套",
    "entire, whole, everything, all of, system, architecture, from scratch, end to end",
    "end-to-end, complete, comprehensive",
)
EXPLICIT_TRIGGERS = words(
    "复杂任务, 三步法, 需要规划, 完整流程",
    "complex task, three-step, three step, needs planning, need planning, full process",
)
UNCERTAINTY = words(
    "想办法, 想想办法, 怎么弄比较好, 怎么做比较好, 怎么搞比较好, 怎么办比较好",
    "不确定, 不清楚, 不知道怎么, 没有头绪, 没头绪, 拿不准, 看着办",
    "figure out, find a way, somehow, not sure, no idea, unclear, whatever works",
)
MULTI_STEP = words(
    "先…然后, 先…再, 先…接着, 先…最后, 首先…其次, 首先…然后, 首先…最后, 第一步…第二步",
    "第一…第二…第三, 一方面…另一方面, 步骤一…步骤二, 步骤1…步骤2",
    "first … then, first … next, first … finally, firstly … secondly, step 1 … step 2",
    "step one … step two, and then … finally, after that … finally",
)
ACTION_VERBS = words(
    "编写, 撰写, 整理, 收集, 采集, 抓取, 爬取, 清洗, 解析, 统计, 汇总, 对比, 比较, 评估",
    "测试, 验证, 发布, 上线, 安装, 配置, 升级, 备份, 恢复, 监控, 训练, 导出, 导入, 下载",
    "上传, 翻译, 修改, 修复, 删除, 更新, 替换, 合并, 生成, 绘制, 搜索, 查询, 检查, 审查",
    "排查, 记录, 通知, 发送, 提交, 总结, 规划, 对接, 集成, 重写, 改造, 拆分, 策划",
    "组织, 安排, 准备, 筹备, 删掉, 重启, 归档, 签署, 采购, 预订",
    "write, rewrite, draft, collect, gather, fetch, download, upload, clean, parse, count",
    "summarise, summarize, compare, evaluate, test, verify, check, review, audit, publish",
    "release, install, configure, upgrade, update, back up, restore, monitor, train, export",
    "import, translate, fix, repair, delete, remove, replace, merge, split, generate, plot",
    "search, query, debug, document, notify, send, submit, plan, integrate, store, convert",
    "organise, organize, arrange, prepare, restart, archive",
)
SMALL_TALK = words(
    "好的, 好, 好吧, 行, 可以, 没问题, 明白, 明白了, 知道了, 了解, 收到, 懂了, 对, 是的",
    "谢谢, 谢谢你, 谢谢您, 多谢, 感谢, 辛苦了, 嗯, 哦, 噢, 哈哈, 呵呵, 你好, 您好, 早, 早安",
    "早上好, 下午好, 晚上好, 晚安, 再见, 拜拜, 不错, 很好, 太好了, 真棒, 赞, 没事, 不客气",
    "ok, okay, okey, k, yes, yep, yeah, yup, no, nope, sure, fine, great, good, nice, cool",
    "perfect, awesome, thanks, thank you, thanks a lot, thank you very much, thx, ty, cheers",
    "got it, i see, understood, noted, roger, right, sounds good, looks good, lgtm, no problem",
    "hi, hello, hey, good morning, good evening, good night, bye, goodbye, see you, welcome",
    "不用, 不用了, 不是, 没有, 不行, 不对, 不要, please, not yet, never mind",
    "you're welcome, well done, great job, good job, so much, very much, all good",
)
CONTINUATIONS = words(
    "继续, 请继续, 继续吧, 继续说, 继续做, 接着, 接着说, 接着做, 接着来, 往下说, 下一步",
    "然后呢, 还有呢, 接下来呢, 下一个, 再来, 再来一个, 开始吧, 来吧",
    "go on, go ahead, continue, please continue, carry on, keep going, next, next step",
    "proceed, and then, then, what next, what's next, more, tell me more, start, do it, let's go",
)
QUESTIONS = words(
    "几点了, 现在几点, 现在几点了, 今天几号, 今天星期几, 天气怎样, 天气怎么样, 今天天气怎样",
    "今天天气怎么样, 明天天气怎么样, 你是谁, 你叫什么, 你叫什么名字, 你能做什么, 在吗, 你在吗",
    "翻译这句话, 翻译一下这句话, 翻译下面这句话, 翻译这段话, 翻译一下这段话, 翻译下面这段话",
    "把这句话翻译, 把这段话翻译, 翻译成英文, 翻译成中文, 译成英文, 译成中文",
    "翻译这个词, 翻译这个句子, what time is it, what's the time, what day is it",
    "what's the date, how's the weather, what's the weather, what is the weather, who are you",
    "how are you, what can you do, are you there, translate this, translate this sentence",
    "translate this word, translate the following, translate the following sentence",
)
QUESTION_ENDINGS = words(
    "吗, 么, 嘛, 呢, 什么, 怎样, 怎么样, 为什么, 如何, 多少, 几点, 几号, 谁, 哪里, 哪儿, 哪个"
)
INSTRUCTIONS = words(
    "搜索, 搜一下, 搜下, 打开, 发消息给, 发条消息给, 发信息给, 发短信给, 发邮件给, 提醒我",
    "播放",
    "open, search for, search, look up, google, send a message to, send message to",
    "send an email to, remind me to, remind me, play",
)
RED_LINES = words(
    # data deletion
    "删除|删掉|清空|销毁|抹除|抹掉|清除…数据|数据库|数据表|备份|账号|所有文件|全部文件, 删库, 删表",
    "格式化…硬盘|磁盘|分区|数据盘",
    "delete|erase|wipe|purge|destroy … data|database|table|backup|record|bucket|volume",
    "delete|erase|wipe … all|every … file|user|account|customer|order|row|message|email",
    "delete|erase|wipe everything, drop|truncate table|database|schema",
    "drop|truncate the|all|our table|database|schema, delete from, rm -r, rm … --recursive",
    "rmtree, find … -delete, mkfs, wipefs, shred, dropdb, flushall, flushdb, dd … of=/dev",
    "docker volume rm|prune, docker system prune, aws s3 rm|rb, kubectl delete pvc|pv|namespace|ns",
    # live trading
    "实盘, 真实资金, 真金白银, 真实下单, live trading|trade|order, real money",
    # production change
    "部署|发布|上线|更新|修改|变更|重启|回滚|迁移|切换|推送…生产|线上|正式环境",
    "生产环境|生产库|生产数据库|线上环境|线上数据库|正式环境…部署|发布|更新|修改|变更|重启|回滚|迁移",
    "deploy|push|release|publish|migrate|ship|promote|roll … production|prod",
    "change|modify|update|alter|patch|restart|stop|edit … production|prod … environment|database"
    "|server|cluster|config|configuration|system|settings",
    "kubectl apply|scale|patch|replace|rollout|drain|set|edit|delete … production|prod",
    "kubectl … production|prod … apply|scale|patch|replace|rollout|drain|set|edit|delete",
    "helm upgrade|install|uninstall|rollback … production|prod",
    "terraform apply … production|prod, terraform destroy",
)
